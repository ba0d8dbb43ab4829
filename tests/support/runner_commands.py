"""What runners of CI take for commands in the output of a program, and terminals for something else than text."""

from __future__ import annotations

import re

#: What runners look for anywhere in a line: GitHub `##[` (ActionCommand.TryParse of actions/runner), Azure `##vso[`,
#: TeamCity `##teamcity[`, GitLab `section_start:1:` (logs_section_prefix_regex of Gitlab::Regex). What terminals and
#: viewers of logs act on: controls of C0 but the line end, and of C1; marks of direction; other line ends.
ANYWHERE = re.compile(
    r"##\[|##vso\[|##teamcity\[|section_(?:start|end):\d+:|"
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufffd]"
)
#: At the start of a line after white space: GitHub `::` (ActionCommand.TryParseV2), and Buildkite `--- ` and so on
#: (HeaderTimesStreamer of buildkite/agent, which allows no space before).
AT_START = re.compile(r"(?m)^\s*(?:::|(?:---|\+\+\+|~~~|\^\^\^)\s)")

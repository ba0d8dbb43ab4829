"""What upstream should know about TensorFlow: on the installed release it is as recorded of it, or of one before."""

from __future__ import annotations

from support.reproductions import INSTALLED, installed_release, known_findings, known_results, news, run


def test_the_installed_release_is_as_recorded() -> None:
    release = installed_release("tensorflow")
    assert release is not None
    of_tensorflow = [each for each in known_findings().values() if each.package == "tensorflow"]
    answers = run((each, INSTALLED) for each in of_tensorflow)
    assert answers
    assert [said for each in answers if (said := news(each, release, known_results()))] == []

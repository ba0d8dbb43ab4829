"""Mutation of zips, FlatBuffers, safetensors, `.npy` files and SQLite databases, each by its layout."""

from __future__ import annotations

import io
import json
import random
import sqlite3
import struct
import warnings
import zipfile
from contextlib import closing, suppress

from fuzz.drawing import damage, hostile_string, near, number
from fuzz.mutate_documents import edit_document, mutate_json
from fuzz.mutate_text import mutate_text

_NAMES = (
    "../../out.txt",
    "/tmp/out.txt",
    "a/../../b",
    "a\0b",
    "",
    ".",
    "..",
    "x" * 70_000,
    "\x1b[31m",
    "a\\b",
    "C:\\x",
)
#: The fields of the headers of a zip that lie well: the signature, and offset and size of each field.
_HEADERS = {
    b"PK\3\4": ((4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)),
    b"PK\1\2": (
        (6, 2),
        (8, 2),
        (10, 2),
        (16, 4),
        (20, 4),
        (24, 4),
        (28, 2),
        (30, 2),
        (32, 2),
        (34, 2),
        (38, 4),
        (42, 4),
    ),
    b"PK\5\6": ((4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)),
}


def _members(chance: random.Random, data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    at = chance.randrange(len(members))
    name, contents = members[at]
    match chance.randrange(7):
        case 0:
            del members[at]
        case 1:
            members.append(members[at])
        case 2:
            members[at] = (chance.choice(_NAMES), contents)
        case 3:
            members[at] = (name, contents[: len(contents) // 2])
        case 4:
            members[at] = (name, b"\0" * chance.choice((1 << 10, 1 << 20, 1 << 24)))
        case 5:
            members += [(f"{name}{index}", b"") for index in range(chance.choice((10, 5000)))]
        case _ if contents[:1] in (b"{", b"["):
            members[at] = (name, mutate_json(chance, contents, contents))
        case _:
            members[at] = (name, damage(chance, contents))
    out = io.BytesIO()
    method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, contents in members:
            archive.writestr(name.encode("utf-8", "replace").decode()[:65_000], contents)
    return out.getvalue()


def mutate_zip(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Return an archive with other members, or with headers that do not agree."""
    if chance.random() < 0.1:
        return damage(chance, data)
    try:
        out = bytearray(_members(chance, data) if chance.random() < 0.5 else data)
    except (ValueError, zipfile.BadZipFile, struct.error):
        out = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 4))):
        signature = chance.choice(list(_HEADERS))
        starts = [at for at in range(len(out)) if out.startswith(signature, at)] if len(out) < 1 << 17 else []
        if starts:
            start = chance.choice(starts)
            offset, size = chance.choice(_HEADERS[signature])
            old = int.from_bytes(out[start + offset : start + offset + size], "little")
            out[start + offset : start + offset + size] = near(chance, old, 1 << 8 * size).to_bytes(size, "little")
    if chance.random() < 0.05:
        out += data[-22:]
    return bytes(out)


def _tables(data: bytes) -> tuple[list[int], list[int]]:
    """Return where offsets and where vtables stand in a FlatBuffer, found by following what can be offsets."""
    vtables: list[int] = []
    offsets, pending, seen = [0], [0], {0}
    while pending and len(seen) < 2000:
        at = pending.pop()
        (step,) = struct.unpack_from("<I", data, at)
        table = at + step
        if table + 4 > len(data):
            continue
        vtable = table - struct.unpack_from("<i", data, table)[0]
        if not 0 <= vtable <= len(data) - 4:
            continue
        size, _ = struct.unpack_from("<HH", data, vtable)
        if not 4 <= size <= min(256, len(data) - vtable) or size % 2:
            # A vector, perhaps of offsets.
            (count,) = struct.unpack_from("<I", data, table)
            found = [table + 4 + 4 * index for index in range(min(count, 20))]
        else:
            vtables += range(vtable, vtable + size, 2)
            fields = struct.unpack_from(f"<{size // 2 - 2}H", data, vtable + 4)
            found = [table + field for field in fields if field]
            offsets.append(table)
        for place in found:
            if place + 4 <= len(data) and place not in seen:
                seen.add(place)
                offsets.append(place)
                pending.append(place)
    return offsets, vtables


def mutate_flatbuffer(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a FlatBuffer with other offsets, vtables, sizes and strings."""
    if chance.random() < 0.15:
        return damage(chance, data)
    out = bytearray(data)
    with suppress(struct.error):
        offsets, vtables = _tables(data)
        for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
            if vtables and chance.random() < 0.3:
                at = chance.choice(vtables)
                (old,) = struct.unpack_from("<H", out, at)
                struct.pack_into("<H", out, at, near(chance, old, 1 << 16))
                continue
            at, target = chance.choice(offsets), chance.choice(offsets)
            (old,) = struct.unpack_from("<I", out, at)
            # To another table, into a circle, beside, or anywhere; or the size of what the offset leads to.
            drawn = chance.choice((target - at, 0, near(chance, old, 1 << 32), number(chance, 1 << 32)))
            place = at + old if chance.random() < 0.4 and at + old + 4 <= len(out) else at
            struct.pack_into("<I", out, place, drawn & 0xFFFF_FFFF)
    return bytes(out)


def mutate_safetensors(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a file of tensors with another header, another size of it, or other data."""
    if chance.random() < 0.1:
        return damage(chance, data)
    size = int.from_bytes(data[:8], "little")
    header, rest = data[8 : 8 + size], data[8 + size :]
    for _ in range(chance.choice((1, 1, 2))):
        match chance.randrange(6):
            case 0:
                return near(chance, size).to_bytes(8, "little") + header + rest
            case 1:
                rest = chance.choice((rest[:-1], rest * 2, b"", damage(chance, rest)))
            case 2:
                header = mutate_json(chance, header, header)
            case 3:
                header = _moved_metadata(chance, header)
            case _:
                document = json.loads(header)
                name = chance.choice(list(document))
                with suppress(LookupError, TypeError):
                    edit_document(chance, document[name])
                header = json.dumps(document).encode()
        try:
            json.loads(header)
        except (ValueError, RecursionError):
            break
    return len(header).to_bytes(8, "little") + header + rest


def _moved_metadata(chance: random.Random, header: bytes) -> bytes:
    """Change the JSON that is a string within the header: what restoring goes by."""
    document = json.loads(header)
    metadata = document.get("__metadata__")
    if not isinstance(metadata, dict) or not metadata:
        return header
    key = chance.choice(list(metadata))
    with suppress(TypeError, ValueError):
        metadata[key] = mutate_json(chance, metadata[key].encode(), b"{}").decode(errors="replace")
    return json.dumps(document).encode()


def mutate_npy(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Return an array file with another header, version or data."""
    if chance.random() < 0.2:
        return damage(chance, data)
    size = int.from_bytes(data[8:10], "little")
    header, rest = data[10 : 10 + size], data[10 + size :]
    header = mutate_text(chance, header, other[10:138])
    if chance.random() < 0.3:
        kinds = (b"'<f8'", b"'|O'", b"'<U5'", b"'|V9'", b"[('a','<f4')]", b"'<M8[s]'", b"'>c16'", b"'|S1000000000'")
        header = header.replace(b"'<f4'", chance.choice(kinds))
    if chance.random() < 0.2:
        rest = chance.choice((b"", rest[:-1], rest * 2))
    version = chance.choice((b"\1\0", b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\4\0", b"\0\0"))
    length = len(header) if chance.random() < 0.9 else number(chance, 1 << 16)
    width = 2 if version == b"\1\0" else 4
    return data[:6] + version + (length & (1 << 8 * width) - 1).to_bytes(width, "little") + header + rest


def _rows(chance: random.Random, data: bytes) -> bytes:
    """Change values, tables or settings of a database."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = chance.choice(tables)
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        column = chance.choice(columns)
        text = hostile_string(chance).decode(errors="replace")
        value = chance.choice(
            (None, "", "{", "[]", "null", "1e999", number(chance, 1 << 63), 1.5, b"\xff", "[" * 3000, text)
        )
        with suppress(sqlite3.Error), database:
            match chance.randrange(8):
                case 0:
                    database.execute(f"DROP TABLE {table}")
                case 1:
                    database.execute(f"DELETE FROM {table}")
                case 2:
                    database.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
                case 3:
                    database.execute(f"PRAGMA user_version = {number(chance, 1 << 31)}")
                case 4:
                    database.execute(f"CREATE TRIGGER t AFTER UPDATE ON {table} BEGIN DELETE FROM {table}; END")
                case _:
                    rows = [row for (row,) in database.execute(f"SELECT rowid FROM {table}")] or [0]
                    database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, chance.choice(rows)))
        return database.serialize()


def mutate_sqlite(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a database with other values, or with damaged pages."""
    if chance.random() < 0.5:
        with suppress(sqlite3.Error):
            return _rows(chance, data)
    out = bytearray(data)
    page = int.from_bytes(out[16:18], "big") or 4096
    for _ in range(chance.choice((1, 1, 2, 5))):
        # The header of a page, its first cells, or the cells at its end.
        start = page * chance.randrange(max(1, len(out) // page))
        at = start + chance.choice((chance.randrange(110), page - 1 - chance.randrange(min(page, 400))))
        if at < len(out):
            out[at] = chance.choice((0, 1, 0x0D, 0x7F, 0xFF, chance.randrange(256)))
    return bytes(out[: chance.choice((len(out), len(out), len(out), chance.randrange(len(out) + 1)))])

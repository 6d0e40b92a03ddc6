# SPDX-License-Identifier: GPL-2.0-or-later
"""What pprof, Parca and Pyroscope require of a pprof file, rule by rule, each with alterations that break it.

Read in the sources of google/pprof at b9395ee1, parca-dev/parca at 3b5647cd and grafana/pyroscope at 3fe6a457, for
their documents do not say all that their servers refuse. None of these programs is needed here.
"""
import copy
import gzip
import re
import time

from harness import check

# Messages of google/pprof: proto/profile.proto. {field number: (name, type)}; lists have the types in brackets.
VALUE_TYPE = {1: ("type", int), 2: ("unit", int)}
LABEL = {1: ("key", int), 2: ("str", int), 3: ("num", int), 4: ("num_unit", int)}
SAMPLE = {1: ("location_id", [int]), 2: ("value", [int]), 3: ("label", [LABEL])}
MAPPING = {1: ("id", int), 2: ("memory_start", int), 3: ("memory_limit", int), 4: ("file_offset", int), 5: ("filename", int),
           6: ("build_id", int), 7: ("has_functions", int), 8: ("has_filenames", int), 9: ("has_line_numbers", int),
           10: ("has_inline_frames", int)}
LINE = {1: ("function_id", int), 2: ("line", int), 3: ("column", int)}
LOCATION = {1: ("id", int), 2: ("mapping_id", int), 3: ("address", int), 4: ("line", [LINE]), 5: ("is_folded", int)}
FUNCTION = {1: ("id", int), 2: ("name", int), 3: ("system_name", int), 4: ("filename", int), 5: ("start_line", int)}
PROFILE = {1: ("sample_type", [VALUE_TYPE]), 2: ("sample", [SAMPLE]), 3: ("mapping", [MAPPING]), 4: ("location", [LOCATION]),
           5: ("function", [FUNCTION]), 6: ("string_table", [bytes]), 7: ("drop_frames", int), 8: ("keep_frames", int),
           9: ("time_nanos", [int]), 10: ("duration_nanos", int), 11: ("period_type", [VALUE_TYPE]), 12: ("period", int),
           13: ("comment", [int]), 14: ("default_sample_type", int), 15: ("doc_url", int)}

MIB, HOUR_S = 1 << 20, 3600
# Of grafana/pyroscope: pkg/validation/limits.go, RegisterFlags(): what a server has if it is not configured.
SIZE, SAMPLES, SAMPLE_LABELS, DEPTH, SYMBOL = 4 * MIB, 16000, 100, 1000, 65535
OLDEST_S, NEWEST_S = HOUR_S, 600
SERIES_LABELS, LABEL_VALUE = 30, 2048
SERVER_LABELS = 4  # name, delta, spy and service of pkg/og/convert/pprof/profile.go, createLabels()


# ---- the encoding -------------------------------------------------------------------------


def varint(data, at):
    value = shift = 0
    while True:
        check(at < len(data) and shift < 70, "a number is cut off")
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def decode(data, fields):
    """A message as {name: value}; what is absent is 0 or an empty list."""
    message = {name: [] if isinstance(kind, list) else 0 for name, kind in fields.values()}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        check(tag >> 3 in fields and tag & 7 in (0, 2), f"field {tag >> 3} of type {tag & 7}")
        name, kind = fields[tag >> 3]
        value, at = varint(data, at)
        if tag & 7 == 2:
            check(at + value <= len(data), f"{name} is cut off")
            value, at = data[at:at + value], at + value
        if not isinstance(kind, list):
            message[name] = value
        elif kind == [int] and isinstance(value, bytes):
            part = 0
            while part < len(value):
                number, part = varint(value, part)
                message[name].append(number)
        else:
            message[name].append(decode(value, kind[0]) if isinstance(kind[0], dict) else value)
    return message


def encode_number(value):
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def encode(message, fields):
    parts = []
    for number, (name, kind) in fields.items():
        for value in message[name] if isinstance(kind, list) else [message[name]]:
            if isinstance(value, dict):
                value = encode(value, kind[0])
            if isinstance(value, bytes):
                parts += [encode_number(number << 3 | 2), encode_number(len(value)), value]
            elif value or isinstance(kind, list):
                parts += [encode_number(number << 3), encode_number(value)]
    return b"".join(parts)


class File:
    """A file as it would be uploaded."""

    def __init__(self, data):
        self.is_compressed = data[:2] == b"\x1f\x8b"
        self.raw = gzip.decompress(data) if self.is_compressed else data
        self.profile = decode(self.raw, PROFILE)

    def altered(self, alteration, random):
        """Returns the file as the alteration leaves it."""
        profile = copy.deepcopy(self.profile)
        alteration(profile, random)
        return gzip.compress(encode(profile, PROFILE), 1)

    def text(self, index):
        strings = self.profile["string_table"]
        return strings[index].decode(errors="replace") if index < len(strings) else ""


# ---- rules: each yields what breaks it ----------------------------------------------------


def compressed(file):
    """google/pprof, proto/profile.proto: on disk, the serialized message is compressed by gzip."""
    if not file.is_compressed:
        yield "the file is not compressed"


def first_string(file):
    """google/pprof, proto/profile.proto, string_table; Parca and Pyroscope refuse a file without it."""
    if file.profile["string_table"][:1] != [b""]:
        yield "the first string is not empty"


def one_time(file):
    """google/pprof, profile/encode.go, errConcatProfile: a second time is that of a file appended to this one."""
    if len(file.profile["time_nanos"]) > 1:
        yield f"{len(file.profile['time_nanos'])} times of collection"


def values(file):
    """google/pprof, profile/profile.go, CheckValid(); Parca, pkg/normalizer/validate.go, ValidatePprofProfile();
    Pyroscope, pkg/validation/validate.go, ValidateProfile(): a sample has a value for each type."""
    types = len(file.profile["sample_type"])
    if types == 0:
        yield "there are no types of samples"
    for sample in file.profile["sample"]:
        if len(sample["value"]) != types:
            yield f"a sample has {len(sample['value'])} values of {types} types"


def identifiers(file):
    """google/pprof, profile/profile.go, CheckValid(): neither 0 nor twice; Parca, ValidatePprofProfile(): 1, 2, … ."""
    for name in ("mapping", "location", "function"):
        if [entry["id"] for entry in file.profile[name]] != list(range(1, len(file.profile[name]) + 1)):
            yield f"the ids of {name} are not in order"


def references(file):
    """Parca, ValidatePprofProfile(); Pyroscope, pkg/pprof/pprof.go, sanitizeProfile(), which drops such samples."""
    mappings, locations, functions = (len(file.profile[name]) for name in ("mapping", "location", "function"))
    for sample in file.profile["sample"]:
        if not all(0 < location <= locations for location in sample["location_id"]):
            yield "a sample has a location that is not there"
    for location in file.profile["location"]:
        if location["mapping_id"] > mappings:
            yield "a location has a mapping that is not there"
        if not all(0 < line["function_id"] <= functions for line in location["line"]):
            yield "a line has a function that is not there"


def string_references(file):
    """Parca, ValidatePprofProfile(); Pyroscope, validateStringTableAccess()."""
    profile, count = file.profile, len(file.profile["string_table"])
    for entries, names in ((profile["mapping"], ("filename", "build_id")),
                           (profile["function"], ("name", "system_name", "filename")),
                           (profile["sample_type"] + profile["period_type"], ("type", "unit")),
                           ([label for sample in profile["sample"] for label in sample["label"]], ("key", "str", "num_unit")),
                           ([{"text": text} for text in profile["comment"]], ("text",)),
                           ([profile], ("default_sample_type", "drop_frames", "keep_frames"))):
        for name in names:
            if any(entry[name] >= count for entry in entries):
                yield f"a string of {name} is not there"


def label_keys(file):
    """Parca, ValidatePprofProfile(): a label has a key."""
    if any(label["key"] == 0 for sample in file.profile["sample"] for label in sample["label"]):
        yield "a label has no key"


def profile_type(file):
    """Parca, pkg/profilestore/profilecolumnstore.go, writeSeries(): NAME:type:unit:type:unit must be a selector of PromQL.
    Pyroscope, ValidateProfile(): no hyphen in a type."""
    for kind in file.profile["sample_type"] + file.profile["period_type"]:
        for text in (file.text(kind["type"]), file.text(kind["unit"])):
            if not re.fullmatch(r"[a-zA-Z0-9_]+", text):
                yield f"{text!r} cannot be a part of a selector"
    if len(file.profile["period_type"]) != 1:
        yield "the type of the period is not there"


def default_type(file):
    """google/pprof, proto/profile.proto, default_sample_type: without it readers show the last type of samples."""
    if file.profile["default_sample_type"] not in [kind["type"] for kind in file.profile["sample_type"]]:
        yield "the default type is none of the types"


def units(file):
    """google/pprof, proto/README.md: a time is in nanoseconds or milliseconds; Pyroscope and Parca scale by these words."""
    for kind in file.profile["sample_type"] + file.profile["period_type"]:
        if file.text(kind["unit"]) != "nanoseconds":
            yield f"the unit {file.text(kind['unit'])!r}"


def counted(file):
    """Pyroscope, pkg/pprof/pprof.go, Normalize(), drops samples with a negative value, and those without time."""
    for sample in file.profile["sample"]:
        if not any(sample["value"]) or any(value >= 1 << 63 for value in sample["value"]):
            yield f"a sample of {sample['value']}"


def located(file):
    """Pyroscope, sanitizeProfile(), drops a location without a line and an address."""
    if any(not location["line"] and not location["address"] for location in file.profile["location"]):
        yield "a location is nowhere"


def in_mapping(file):
    """google/pprof, proto/README.md: an address is between the start and the limit of its mapping."""
    for location in file.profile["location"]:
        if 0 < location["mapping_id"] <= len(file.profile["mapping"]):
            mapping = file.profile["mapping"][location["mapping_id"] - 1]
            if not mapping["memory_start"] <= location["address"] < mapping["memory_limit"]:
                yield f"{location['address']:#x} is not in {mapping['memory_start']:#x}-{mapping['memory_limit']:#x}"


def utf8(file):
    """Pyroscope, ValidateProfile(): all strings are UTF-8, as proto3 says."""
    for text in file.profile["string_table"]:
        try:
            text.decode()
        except UnicodeDecodeError:
            yield f"{text!r} is not UTF-8"


def label_names(file):
    """Pyroscope makes labels of series of a sample's labels: pkg/validation/validate.go, ValidateLabels(), with the
    limits of limits.go. Parca, LabelsFromSample(), renames what Prometheus does not take for a name, and takes the first of two."""
    for sample in file.profile["sample"]:
        keys = [file.text(label["key"]) for label in sample["label"]]
        if len(keys) != len(set(keys)) or len(keys) > min(SAMPLE_LABELS, SERIES_LABELS - SERVER_LABELS):
            yield f"labels {keys}"
        if not all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", key) for key in keys):
            yield f"a name in {keys}"
        if any(len(file.text(label["str"]).encode()) > LABEL_VALUE for label in sample["label"]):
            yield "the value of a label is too long"


def collected(file):
    """Pyroscope, ValidateProfile(), newIngestionWindow(): not before an hour ago; a file without a time has that of its
    upload there, and 1970 in Parca, MetaFromPprof()."""
    ns = (file.profile["time_nanos"] or [0])[0]
    if not -OLDEST_S < ns / 1e9 - time.time() < NEWEST_S:
        yield f"it was collected at {ns / 1e9}"


def limits(file):
    """Pyroscope, ValidateProfile(): size and number of samples; deeper stacks lose their leaves, longer strings their
    beginnings."""
    profile = file.profile
    if len(file.raw) > SIZE or len(profile["sample"]) > SAMPLES:
        yield f"{len(file.raw)} bytes, {len(profile['sample'])} samples"
    if any(len(sample["location_id"]) > DEPTH for sample in profile["sample"]):
        yield "a stack is too deep"
    if any(len(text) > SYMBOL for text in profile["string_table"]):
        yield "a string is too long"


# ---- alterations --------------------------------------------------------------------------


def put(message, name, value):
    """An alteration: the field of one of these messages (a path of lists, "" is the profile) gets that value."""
    def alteration(profile, random):
        entries = [profile]
        for part in filter(None, message.split(".")):
            entries = [entry for outer in entries for entry in outer[part]]
        entry = random.choice(entries)
        entry[name] = value(entry[name], profile) if callable(value) else value
    return alteration


def new_string(text):
    """A value that refers to a string of its own."""
    def value(_, profile):
        profile["string_table"].append(text)
        return len(profile["string_table"]) - 1
    return value


def beyond(name):
    """A value that is one more than the table has."""
    return lambda _, profile: len(profile[name]) + 1


def one_more(name, make):
    def alteration(profile, random):
        profile[name].append(make(random.choice(profile[name] or [0])))
    return alteration


def longest(name, count):
    """Repeats what is in a list until it has so many."""
    return lambda old, _: (old * (count // max(1, len(old)) + 1))[:count]


def without(name):
    return lambda profile, random: profile.update({name: []})


# Each rule, whether `go tool pprof` refuses what breaks it, and what breaks it.
RULES = (
    (first_string, False, [put("", "string_table", lambda old, _: [b"x", *old[1:]])]),
    (one_time, True, [one_more("time_nanos", lambda ns: ns + 1)]),
    (values, True, [put("sample", "value", lambda old, _: old[1:]), put("sample", "value", lambda old, _: [*old, 1]),
                    without("sample_type")]),
    (identifiers, True, [put("location", "id", 0), put("function", "id", 0), put("mapping", "id", 0),
                         one_more("location", copy.deepcopy), one_more("function", copy.deepcopy)]),
    (identifiers, False, [lambda profile, random: profile["function"].reverse(),
                          lambda profile, random: profile["location"].reverse()]),
    (references, True, [put("sample", "location_id", lambda old, profile: [*old, len(profile["location"]) + 1])]),
    (references, False, [put("location.line", "function_id", beyond("function")),
                         put("location", "mapping_id", beyond("mapping"))]),
    (string_references, True, [put("function", "name", beyond("string_table")), put("mapping", "build_id", beyond("string_table")),
                               put("sample_type", "unit", beyond("string_table")),
                               put("sample.label", "key", beyond("string_table"))]),
    (label_keys, False, [put("sample.label", "key", 0)]),
    (profile_type, False, [put("sample_type", "type", new_string(b"off-cpu")), put("sample_type", "unit", new_string(b"")),
                           put("period_type", "type", new_string(b"wall time")), without("period_type")]),
    (default_type, False, [put("", "default_sample_type", new_string(b"samples"))]),
    (units, False, [put("sample_type", "unit", new_string(b"ticks"))]),
    (counted, False, [put("sample", "value", [0, 0, 0]), put("sample", "value", lambda old, _: [-1, *old[1:]])]),
    (located, False, [lambda profile, random: random.choice(profile["location"]).update(line=[], address=0)]),
    (in_mapping, False, [lambda profile, random: profile["mapping"][random.choice(
        [at["mapping_id"] for at in profile["location"] if at["mapping_id"]]) - 1].update(memory_limit=1)]),
    (utf8, False, [one_more("string_table", lambda _: b"caf\xe9")]),
    (label_names, False, [put("sample.label", "key", new_string(b"thread name")),
                          put("sample.label", "str", new_string(b"x" * (LABEL_VALUE + 1))),
                          put("sample", "label", lambda old, _: [*old, dict(old[0])]),
                          put("sample", "label", longest("label", SERIES_LABELS))]),
    (collected, False, [without("time_nanos"), put("", "time_nanos", lambda old, _: [old[0] - HOUR_S * 10**9]),
                        put("", "time_nanos", lambda old, _: [old[0] + HOUR_S * 10**9])]),
    (limits, False, [put("", "sample", longest("sample", SAMPLES + 1)), put("sample", "location_id", longest("", DEPTH + 1)),
                     one_more("string_table", lambda _: b"x" * (SYMBOL + 1)),
                     lambda profile, random: profile["string_table"].extend([b"x" * SYMBOL] * (SIZE // SYMBOL + 1))]),
)


def broken(data):
    """{rule: what breaks it} of a file."""
    file = File(data)
    found = {rule: list(rule(file)) for rule in (compressed, *dict.fromkeys(rule for rule, _, _ in RULES))}
    return {rule.__name__: why for rule, why in found.items() if why}


def check_rules(data):
    found = broken(data)
    check(not found, "; ".join(f"{rule}: {why[0]}" for rule, why in found.items()))

"""A mapping file is checked as a whole: every problem at once, each at its place."""

import json
import re
from pathlib import Path

import pytest

from adapters.documents.document import parse_document
from adapters.documents.problems import DocumentErrors
from adapters.mapping.loader import load_mapping, read_mapping
from adapters.sample import MAPPING
from gateway.backend import shapes
from tests.adapters.clinic import WITHOUT_REFERENCE, mapping_without

SAMPLE = MAPPING.read_text()


def problems(tmp_path: Path, text: str) -> list[str]:
    """What is wrong with the text, as `line: what`."""
    file = tmp_path / "clinic.yaml"
    file.write_text(text)
    with pytest.raises(DocumentErrors) as caught:
        load_mapping(file, shapes(), "sql")
    return [f"{each.line}: {each.text}" for each in caught.value.problems]


def line_of(text: str) -> int:
    """The line of the sample's mapping in which the text stands first."""
    return SAMPLE[: SAMPLE.index(text)].count("\n") + 1


MISTAKES = [
    (
        "firstName: p.PRENOM",
        "firstname: p.PRENOM",
        "firstname is no field here (did you mean firstName?)",
    ),
    ("key: p.ID_PERS", "kee: p.ID_PERS", "kee is not known here (did you mean key?)"),
    (
        "codes: {O: ACTIVE,",
        "codes: {O: ACTIV,",
        "ACTIV is no value of this field (did you mean ACTIVE?): use ACTIVE, DECEASED or INACTIVE",
    ),
    (
        "codes: {O: ACTIVE,",
        "codes: {O: DONE,",
        "DONE is no value of this field: use ACTIVE, DECEASED or INACTIVE",
    ),
    ("firstName: p.PRENOM", "firstName: {source: 1}", "source: must be a text: put it in quotes"),
    (
        "firstName: p.PRENOM",
        "firstName: {source: {a: b}}",
        "source: must be a text, or a list of texts",
    ),
    ("firstName: p.PRENOM", "firstName:", "firstName: is empty: write a text, or leave it out"),
    ("zone: Europe/Paris", "# Europe/Paris", "zone is missing, such as zone: Europe/Paris"),
    (
        "  clients:\n",
        "  owners: {from: x, fields: {}}\n  clients:\n",
        "key is missing, such as key: p.id",
    ),
    ("      lines:\n", "      line:\n", "no list line (did you mean lines?): write lists: with"),
    (
        "  patients:\n",
        "  patients:\n    lists: {lines: {from: a, parent: b, key: c, fields: {}}}\n",
        "patients has no list lines, nor any other: leave lists out",
    ),
    ("step: 15", "closed: 2026-12-25\n  step: 15", "closed: must be a list: write [2026-12-25]"),
    ("zone: Europe/Paris", "zone: Europe/Pariss", "no time zone is called Europe/Pariss"),
    ("as: cents", "as: cent", "no converter is called cent (did you mean cents?)"),
    ('separator: ";"', "zero: []", "zero does not go with as: split text"),
    ("{draft: patientId}", "{draft: patient}", "a draft has no patient (did you mean patientId?)"),
    ("{made: rdv}", "{made: rdvv}", "no step before this one is called rdvv (did you mean rdv?)"),
    ("appointment: rdv", "appointment: number", "number is not the name of an insert with a key"),
    ("  stock:\n", "  stocks:\n", "stocks is no resource (did you mean stock?)"),
    (
        "vetId: r.ID_VETO",
        "vetId: {source: r.ID_VETO, of: vet}",
        "of must name a resource (did you mean vets?)",
    ),
    ("version: 2", "version: 3", "version: must be 2"),
    ("version: 2", "version: 1", "`clinic-gateway backend upgrade clinic.yaml` rewrites it"),
    ("diary:\n", "step: 15\ndiary:\n", "step is not known here: indent it under diary:"),
    ("key: p.ID_PERS", "key: 5", "key: must be a text: put it in quotes"),
    ("step: 15 ", "step: 1 ", "step: must be greater than or equal to 5"),
    (
        "QUI: PASSERELLE",
        "QUI: {made: rdv, draft: reason}",
        "sql, constant, not draft and made",
    ),
    (":number)", ":numbre)", "no step before this one is called numbre (did you mean number?)"),
    ("  reference: r.REF_EXT", "", "reference is missing: say where the reference"),
    (
        "  appointment: rdv\n",
        "  appointment: rdv\n  lock: UPDATE PERSONNES SET NOM = NOM WHERE ID_PERS = :vett\n",
        "a lock is of no vett (did you mean vet?)",
    ),
    (
        "  appointment: rdv\n",
        "  appointment: rdv\n  lock: UPDATE RDV SET X = X WHERE S = :schedule\n",
        "a lock is of no schedule",
    ),
    (
        "start: r.D_DEBUT",
        "start: {source: r.D_DEBUT, as: local tim}",
        "no converter is called local tim (did you mean local time?)",
    ),
    (
        "URGENT: {draft: isUrgent",
        "URGENT: {draft: isUrgent, codes: {O: x}",
        "O: must be true or false",
    ),
    ("yes: [O]", "yes: []", "yes: "),
    ('separator: ";"', 'separator: ""', "separator: "),
    ("longest: 2 ", "longest: 0 ", "longest: must be greater than or equal to 1"),
    (
        "D_FIN: {draft: endTime}",
        "D_FIN: {draft: endTime, pattern: when}",
        "pattern must have parts of a time",
    ),
    (
        "scheduledAt: r.D_DEBUT",
        'scheduledAt: {source: r.D_DEBUT, pattern: "%Y-%m-%d"}',
        "pattern must write what can be read again",
    ),
    (
        "start: r.D_DEBUT",
        'start: {source: r.D_DEBUT, pattern: "%d/%m/%Y %H:%M"}',
        "pattern must sort as they do",
    ),
]


ZONE = "zone: Europe/Paris "
HOURS = "    - from: HORAIRES h\n"
COUNTER = "    - counter: COMPTEURS\n"
JOURNAL = "    - insert: RDV_JOURNAL\n"
MADE = "        ID_RDV: {made: rdv}\n"
EACH = "      values:\n        ID_RDV: {made: rdv}\n        ACTION: C\n"
REPEATED = (
    ("[{act: C}, {act: D}]", "{each: akt}", "the list in each has no akt (did you mean act?)"),
    ("[{act: C}, {act: D, by: 1}]", "{each: act}", "by is missing, which others of this list have"),
    ("[{act: C, by: 1}]", "{each: act}", "no value of this step is {each: by}"),
    ("[{reason: C}]", "{each: reason}", "reason has a meaning in a booking already"),
    ("[{act: C, if: typ}]", "{each: act}", "a draft has no typ"),
    ("[{act: C, if: {draft: typ}}]", "{each: act}", "a draft has no typ"),
    ("[{act: {draft: x}}]", "{each: act}", "a draft has no x"),
    ("[]", "C", "each: "),
    ("slots", "C", "each: must be 'slot'"),
    ("[{act: C}]", "{each: act, part: 1}", "part does not go with each"),
    ("[{act: C}]\n      name: x", "{each: act}", "happens several times"),
)
LANGUAGE = [
    *(
        (EACH, f"      each: {listed}\n      values:\n        ACTION: {value}\n{MADE}", said)
        for listed, value, said in REPEATED
    ),
    ("{draft: patientId}", "{sql: ':referenc'}", "called referenc (did you mean reference?)"),
    ("resources:\n", "expressions: {a: '{a} + 1'}\nresources:\n", "a leads back to itself: a, a"),
    (
        ZONE,
        f"accepted: {{start-befor-end: They were typed so}}\n{ZONE}",
        "no law is called start-befor-end (did you mean start-before-end?); the reference has a",
    ),
    (ZONE, f'accepted: {{lines-add-up: " - "}}\n{ZONE}', "lines-add-up: needs a reason: why this"),
    (ZONE, f"accepted: {{lines-add-up: }}\n{ZONE}", "lines-add-up: must be a text"),
    (ZONE, f"accepted: [lines-add-up]\n{ZONE}", "accepted: must be a group of names and values"),
    (
        "key: p.ID_PERS",
        "key: {source: [p.A, p.B], as: id}",
        "a key of several columns is no id; leave `as` out",
    ),
    ("name: a.NOM", "name: [a.NOM, a.NOM2]", "as: text reads one column, and here are 2"),
    (
        "scheduledAt: r.D_DEBUT",
        "scheduledAt: [r.A, r.B, r.C]",
        "a time stands in one column or in two",
    ),
    (
        "scheduledAt: r.D_DEBUT",
        'scheduledAt: {source: [r.A, r.B], pattern: "%Y-%m-%dT%H:%M"}',
        "needs a blank between day and time",
    ),
    ("name: a.NOM", "name: {source: a.NOM, as: part of text, part: 0}", "part must be 1 or more"),
    ("name: a.NOM", "name: {source: a.NOM, encoding: cp1525}", "no encoding is called cp1525"),
    (
        "color: t.COULEUR",
        "color: {source: t.COULEUR, codes: {A: red}}",
        "A: must be a colour such as",
    ),
    (
        "durationMinutes: t.DUREE_MIN",
        'durationMinutes: {source: t.C, codes: {A: "20"}}',
        "A: must be a whole number",
    ),
    (HOURS, "    - days: [monday]\n      times: []\n" + HOURS, "monday is no day of the week"),
    (HOURS, "    - days: [mon]\n      times: [8-12]\n" + HOURS, "8-12 are no hours: write them"),
    (HOURS, "    - days: [mon]\n" + HOURS, "needs rows with weekday, start and end, or else days"),
    ("weekday: h.JOUR", "weekday: h.JOUR\n      days: [mon]", "days does not go with rows (from)"),
    ("weekday: h.JOUR", "day: h.D\n      weekday: h.JOUR", "take weekday or day, not both"),
    ("vet: h.ID_VETO", "schedule: h.ID", "a schedule needs diary.schedules"),
    ("vet: h.ID_VETO", "vet: h.A\n      schedule: h.B", "takes vet or schedule, not both"),
    (
        "step: 15",
        "schedules: {from: s, vet: v, key: s.id, default_type: [a, b]}\n  step: 15",
        "default_type must have as many columns as the key of appointmentTypes",
    ),
    (
        "step: 15",
        "schedules: {from: s, vet: v, key: s.id, default_type: {source: a, as: money}}\n  step: 15",
        "as: money makes no uuid",
    ),
    (
        "step: 15",
        "durations: [{from: d, type: t, minutes: m, only: yes please}]\n  step: 15",
        "only: must be true or false",
    ),
    ("step: 15", "closed: [25.12.2026]\n  step: 15", "25.12.2026 is no day: write 2026-12-25"),
    (
        "end: r.D_FIN",
        "end: {source: r.D_DEBUT, plus: r.MIN}",
        "write it as minutes, beside start",
    ),
    (COUNTER, "    - update: RDV\n      values: {A: 1}\n" + COUNTER, "an update needs where"),
    (COUNTER, "    - sequence: s\n" + COUNTER, "a sequence needs name"),
    (
        COUNTER,
        "    - sequence: s\n      name: n\n      column: C\n" + COUNTER,
        "column does not go with sequence",
    ),
    (COUNTER, "    - name: nothing\n" + COUNTER, "takes one of insert, update, counter, sequence"),
    (JOURNAL, JOURNAL + "      for: slot\n", "there are no slot rows: diary.slots says where"),
    (JOURNAL, JOURNAL + "      if: type\n", "a draft has no type"),
    (JOURNAL, JOURNAL + "      if: reason\n      name: j\n", "so it has no name for others"),
    (
        "ACTION: C",
        "ACTION: {draft: slot, as: text}",
        "slot is written as the practice system has it",
    ),
]


@pytest.mark.parametrize(("right", "wrong", "said"), [*MISTAKES, *LANGUAGE])
def test_a_mistake_is_named_with_its_line_and_remedy(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    found = problems(tmp_path, SAMPLE.replace(right, wrong, 1))
    named = [each for each in found if said in each]
    assert named, found
    line = line_of(right) - (1 if "separator" in right else 0)
    assert abs(int(named[0].split(":")[0]) - line) <= 2


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    text = SAMPLE.replace("firstName:", "firstname:", 1).replace("as: cents", "as: cent", 2)
    text = text.replace("{draft: vetId}", "{draft: vet}").replace("weightKg:", "weight:")
    assert len(problems(tmp_path, text)) == 5


@pytest.mark.parametrize(
    ("resource", "gone", "named"),
    [
        ("patients", "clientId", "clientId is missing: no booking can be made without it"),
        ("appointments", "vetId", "vetId is missing"),
        ("appointments", "createdAt", "unless booking.reference says where"),
    ],
)
def test_what_a_booking_needs_must_be_mapped(
    tmp_path: Path, resource: str, gone: str, named: str
) -> None:
    text = mapping_without(*WITHOUT_REFERENCE)
    data = parse_document(text.encode(), "clinic.yaml").data
    del data["resources"][resource]["fields"][gone]
    [found] = problems(tmp_path, json.dumps(data))
    assert named in found


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        ("QUI: PASSERELLE", "QUI: [P]", "QUI"),
        ("yes: [O], no: [N]}\n      birth", "yes: [[O]], no: [N]}\n      birth", "yes"),
    ],
)
def test_a_value_that_is_no_plain_one_is_one_problem(
    tmp_path: Path, right: str, wrong: str, name: str
) -> None:
    assert right in SAMPLE
    assert problems(tmp_path, SAMPLE.replace(right, wrong, 1)) == [
        f"{line_of(right)}: {name}: must be a text, a number, true or false"
    ]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("key: {a: 1}", "key: must be a text, or a list"),
        ("key: [1]", "key: must be a text: put it in quotes"),
        ("key: 1", "key: must be a text, or a list"),
    ],
)
def test_what_may_be_one_or_several_is_one_problem(tmp_path: Path, wrong: str, said: str) -> None:
    text = SAMPLE.replace(JOURNAL, f"    - insert: RDV_JOURNAL\n      {wrong}\n", 1)
    assert problems(tmp_path, text) == [f"{line_of(JOURNAL) + 1}: {said}"]


def test_steps_without_dashes_are_said_to_need_them(tmp_path: Path) -> None:
    text = SAMPLE[: SAMPLE.index("  steps:\n")] + "  steps:\n    insert: RDV\n"
    said = "steps: must be a list: begin each of its items with `- `"
    assert problems(tmp_path, text) == [f"{line_of('  steps:') + 1}: {said}"]


def test_with_a_reference_the_time_of_making_may_be_missing(tmp_path: Path) -> None:
    data = parse_document(SAMPLE.encode(), "clinic.yaml").data
    del data["resources"]["appointments"]["fields"]["createdAt"]
    file = tmp_path / "clinic.yaml"
    file.write_text(json.dumps(data))
    load_mapping(file, shapes(), "sql")


@pytest.mark.parametrize(
    ("key", "at", "said"),
    [
        (
            "key: p.ID_PERS",
            "clientId: >-",
            "clientId must have as many columns as the key of clients",
        ),
        ("key: f.ID_FACT", "parent: l.ID_FACT", "parent must have as many columns as the key of"),
    ],
)
def test_what_refers_to_a_key_of_several_columns_has_as_many(
    tmp_path: Path, key: str, at: str, said: str
) -> None:
    found = problems(tmp_path, SAMPLE.replace(key, "key: [a.A, a.B]", 1))
    assert f"{line_of(at)}: {said}" in "\n".join(found)


def test_what_blocks_must_show_which_row_is_the_booking_itself(tmp_path: Path) -> None:
    [found] = problems(tmp_path, mapping_without("by it a booking is told from"))
    assert "no source here has a key" in found
    assert found.startswith(f"{line_of('  busy:')}: ")


def test_a_reference_that_nothing_writes_is_refused(tmp_path: Path) -> None:
    [found] = problems(tmp_path, mapping_without("REF_EXT: {draft: reference}"))
    assert "no step has {draft: reference}" in found


@pytest.mark.parametrize(
    "pattern", ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S.000"]
)
def test_a_pattern_that_reads_back_is_taken(tmp_path: Path, pattern: str) -> None:
    file = tmp_path / "clinic.yaml"
    wanted = f'D_FIN: {{draft: endTime, pattern: "{pattern}"}}'
    file.write_text(SAMPLE.replace("D_FIN: {draft: endTime}", wanted))
    load_mapping(file, shapes(), "sql")


def test_a_doubled_name_hides_no_other_problem_and_makes_none(tmp_path: Path) -> None:
    text = SAMPLE.replace("  step: 15", "  duration: 20\n  step: 15", 1)
    found = problems(tmp_path, text.replace("as: cents", "as: cent", 1))
    assert len(found) == 2
    assert "duration stands here a second time" in "".join(found)
    assert "no converter is called cent" in "".join(found)


def without(*names: str) -> str:
    """The sample's mapping without these resources, or without the diary or the booking."""
    text = SAMPLE
    for name in names:
        indent = "" if name in ("diary", "booking") else "  "
        text = re.sub(rf"^{indent}{name}:\n(?:{indent} .*\n|\n)+", "", text, flags=re.MULTILINE)
    return text


@pytest.mark.parametrize(
    "names", [["stock"], ["consultations", "invoices", "stock"], ["booking"], ["diary", "booking"]]
)
def test_what_is_left_out_is_no_problem(tmp_path: Path, names: list[str]) -> None:
    file = tmp_path / "clinic.yaml"
    file.write_text(without(*names))
    mapping, _ = load_mapping(file, shapes(), "sql")
    assert set(shapes()) - {*mapping.resources, "slots"} == {*names} - {"diary", "booking"}
    assert [part for part in ("diary", "booking") if not mapping.offers(part)] == [
        part for part in ("diary", "booking") if part in names
    ]
    assert not list(mapping.booking.steps) or "booking" not in names


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["stock", "diary"], "diary is missing: it says which times can be booked"),
        (["consultations", "invoices", "clients"], "clients is missing, which the booking needs"),
        (["clients"], "clientId leads to clients, which this mapping leaves out"),
        (["vets", "booking"], "vets is missing, which the diary needs"),
    ],
)
def test_what_needs_something_that_is_left_out_is_named(
    tmp_path: Path, names: list[str], said: str
) -> None:
    found = problems(tmp_path, without(*names))
    assert [each for each in found if said in each]


def test_a_mapping_of_nothing_is_refused(tmp_path: Path) -> None:
    every = [name for name in shapes() if name != "slots"]
    found = problems(tmp_path, without(*every, "diary", "booking"))
    assert [each for each in found if "resources" in each]
    said = "3: resources: nothing is mapped yet: confirm the guesses in the comments, or write a"
    assert problems(tmp_path, f"version: 2\n{ZONE}\nresources: {{}}\n") == [f"{said} resource"]


def test_a_reference_that_no_step_writes_cannot_be_read(tmp_path: Path) -> None:
    found = problems(tmp_path, SAMPLE.replace("REF_EXT: {draft: reference}", "REF_EXT: x", 1))
    said = "no step has {draft: reference} or {draft: uuid}, nor :reference or :uuid in its SQL"
    assert found == [
        f"{line_of('reference: r.REF_EXT')}: {said}, so there is nothing to be read here"
    ]


@pytest.mark.parametrize("written", ["{sql: \"CONCAT('R', :reference)\"}", "{draft: uuid}"])
def test_the_reference_may_stand_wherever_a_value_may(tmp_path: Path, written: str) -> None:
    file = tmp_path / "clinic.yaml"
    file.write_text(SAMPLE.replace("{draft: reference}", written, 1))
    load_mapping(file, shapes(), "sql")


def test_the_sample_maps_every_field_of_every_resource() -> None:
    mapping, _ = load_mapping(MAPPING, shapes(), "sql")
    for name, fields in shapes().items():
        if name == "slots":
            continue
        rows = mapping.resources[name]
        mapped = {*rows.fields} | {
            f"{n}[].{f}" for n, own in rows.lists.items() for f in own.fields
        }
        assert {path for path in fields if path.split("[].")[-1] != "id"} == mapped


def test_what_could_never_be_taken_back_is_refused_where_there_are_no_transactions(
    tmp_path: Path,
) -> None:
    text = MAPPING.read_text().replace(
        "  appointment: rdv\n",
        "  appointment: rdv\n  without_transactions: [RDV, RDV_JOURNAL, COMPTEURS]\n",
    )
    [said] = problems(tmp_path, text)
    assert "RDV_JOURNAL has no transactions: say its key" in said
    update = "    - {update: RDV_JOURNAL, where: ID_RDV = :rdv, values: {ACTION: C}}\n"
    head, _, _ = text.partition("    - insert: RDV_JOURNAL")
    [said] = problems(tmp_path, head + update)
    assert "what an update changes there cannot be taken back" in said


def test_a_path_that_is_wrong_hides_no_other_mistake(tmp_path: Path) -> None:
    file = tmp_path / "clinic.yaml"
    file.write_text(
        "version: 2\nzone: Europe/Paris\nbackend: {ping: /status}\nresources:\n  clients:\n"
        "    one: /clients/{id}\n    list: /clients\n    key: id\n    fields:\n"
        "      firstName: a..b\n      lastNam: c\n      phone: {source: p, as: nonsense}\n"
    )
    _, _, problems = read_mapping(file, shapes(), "rest")
    assert [each.line for each in problems] == [10, 11, 12]


def test_all_that_does_not_go_together_in_a_part_is_said(tmp_path: Path) -> None:
    file = tmp_path / "clinic.yaml"
    file.write_text(
        "version: 2\nzone: Europe/Paris\nresources:\n  vets: {from: vet v, key: v.id}\n"
        "diary:\n  hours: [{days: [mon], vet: v.id}]\n"
    )
    _, _, problems = read_mapping(file, shapes(), "sql")
    [told] = [str(each) for each in problems if each.line == 6]
    assert "vet does not go with" in told
    assert "needs rows with weekday, start and end" in told

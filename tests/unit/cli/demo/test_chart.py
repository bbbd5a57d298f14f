from __future__ import annotations

from xml.etree import ElementTree as ET

from netqos.cli.demo.chart import WIDTH, draw, height
from netqos.cli.demo.scenario import build_scenario
from netqos.cli.demo.verdict import Recording, judge
from netqos.model.levels import Level
from tests.unit.cli.demo.demodata import RX, SCENARIO, SIDES, TX, record

SVG = "{http://www.w3.org/2000/svg}"


def drawn(recording: Recording) -> ET.Element:
    return ET.fromstring(draw(judge(SCENARIO, recording), recording))


def texts(picture: ET.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def test_every_point_lies_in_the_picture() -> None:
    wild = {(number, level): 3.0 for number in range(5) for level in Level}
    for recording in (record(), record(scale=wild)):
        lines = list(drawn(recording).iter(f"{SVG}polyline"))
        assert len(lines) == 6
        for number, line in enumerate(lines):
            points = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
            assert len(points) == 125
            panel = range(92, 363) if number < 3 else range(402, 673)
            assert all(0 <= x <= WIDTH and panel.start <= y <= panel.stop for x, y in points)
            assert panel.stop < height(2)


def test_one_direction_alone_has_one_panel() -> None:
    scenario = build_scenario(seconds=12.5, sides={RX: SIDES[RX]})
    recording = record(scenario)
    picture = ET.fromstring(draw(judge(scenario, recording), recording))
    assert len(list(picture.iter(f"{SVG}polyline"))) == 3
    assert (picture.attrib["height"], height(2) - height(1)) == (str(height(1)), 310)


def test_each_promise_is_a_dashed_line_where_the_rate_should_be() -> None:
    picture = drawn(record())
    promises = [path.attrib["d"] for path in picture.iter(f"{SVG}path") if path.get("class") == "promise"]
    assert len(promises) == 1 + 2 * sum(len(phase.greedy) for phase in SCENARIO.phases)  # one is the legend's
    rate = next(line for line in picture.iter(f"{SVG}polyline") if line.get("stroke") == "#d55e00")
    first_point = rate.attrib["points"].split()[0].split(",")
    assert promises[1].split()[1].split("H")[0] == first_point[1]


def test_the_picture_tells_phases_levels_and_measured_rates() -> None:
    told = texts(drawn(record()))
    assert "Three greedy workloads, one of each level: 1000 out and 600 in, Mbit/s" in told
    for text in (
        "egress",
        "ingress",
        "330.0",
        "L2 alone fills the link",
        "L0 stops",
        "L0  web",
        "L1  api",
        "L2  batch",
        "settled at once",
        "800.0",
    ):
        assert text in told


def test_a_phase_that_is_unsteady_says_so() -> None:
    for way in (TX, RX):
        assert texts(drawn(record(scale={(2, Level.L0): 1.3}, way=way))).count("unsteady") == 1


def test_numbers_of_levels_close_together_do_not_touch() -> None:
    picture = drawn(record(scale={(2, Level.L2): 1.45}))  # L2 at 290 beside L1 at 300
    numbers = [element for element in picture.iter(f"{SVG}text") if element.get("style")]
    in_the_third_phase = [element for element in numbers if element.attrib["x"] == "502.0"][:3]
    places = {element.text: float(element.attrib["y"]) for element in in_the_third_phase}
    assert set(places) == {"500.0", "300.0", "290.0"}
    assert places["290.0"] - places["300.0"] > 15

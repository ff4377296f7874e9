"""Every source on a few made-up rows in the layout of its file, so that each is tested without the raw files too."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from persons import persons

from fairfront.datasets import info, names
from fairfront.datasets.groups import categorise
from fairfront.datasets.sources import RAW, TASKS, Table, arrhythmia

COMPAS = """sex,age,race,juv_fel_count,juv_misd_count,juv_other_count,priors_count,c_charge_degree,two_year_recid,\
days_b_screening_arrest,is_recid,score_text,name
Male,40,Other,0,0,0,3,F,1,-1,1,Low,a
Female,20,Caucasian,0,0,0,0,M,0,0,0,High,b
Male,30,Other,0,0,0,0,F,0,31,0,Low,too late
Male,30,Other,0,0,0,0,F,0,,0,Low,no day
Male,30,Other,0,0,0,0,F,0,0,-1,Low,not known
Male,30,Other,0,0,0,0,O,0,0,0,Low,ordinary
Male,30,Other,0,0,0,0,F,0,0,0,N/A,no score
"""
LSAC = """ID,age,fam_inc,fulltime,gender,lsat,race1,ugpa,zgpa,gpa
1,-60,5,1,female,40,white,3.5,1.5,3.5
2,-61,4,1,male,41,black,3.0,,3.0
3,-62,3,2,,42,hisp,2.9,0.5,2.9
4,-63,2,1,male,43,asian,2.8,-0.5,
"""
DUTCH = """@relation dutch
@attribute sex {2,1}
@attribute age {4,12,13}
@attribute occupation {5_4_9,2_1}
@data
1,4,2_1
2,12,5_4_9
1,13,2_1
"""
PARKINSONS = (
    "subject#,age,sex,test_time,motor_UPDRS,total_UPDRS,PPE\n1,72,0,5.6,28.2,34.4,0.16\n2,58,1,12.7,20.0,26.0,0.2\n"
)
STUDENT = "school;sex;age;G1;G2;G3\nGP;F;18;5;6;7\nMS;M;17;10;11;12\n"
GOVERNMENT = (
    "sex,age,race,salary,occupation,industry\nmale,64,black,50000,13-1081,928P\nfemale,39,mix,50001,29-2010,6111\n"
)
ACS2012 = """income,employment,hrs_work,race,age,gender,citizen,time_to_work,lang,married,edu,disability,birth_qrtr
60000,employed,40,white,40,female,yes,30,english,no,college,no,jul thru sep
50000,employed,40,black,39,male,no,20,other,yes,college,yes,jul thru sep
,,,white,12,female,yes,,english,no,hs or lower,no,oct thru dec
0,not in labor force,,asian,70,male,yes,,english,no,hs or lower,no,oct thru dec
"""
ADULT = """39, ?, 1, Masters, 13, Divorced, ?, Wife, Black, Female, 0, 0, 40, Cuba, >50K
50, Private, 2, 9th, 5, Widowed, Sales, Husband, White, Male, 0, 0, 13, Japan, <=50K
"""
GERMAN = """A11 6 A34 A43 11 A65 A75 4 A92 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1
A12 48 A32 A43 59 A61 A73 2 A93 A101 2 A121 22 A143 A152 1 A173 1 A191 A201 2
"""


def sets(name: str) -> list[str]:
    """Return the data sets on a file of the registry, but those on a survey's."""
    return [word for word in names() if info(word).file.name == name and info(word).survey is None]


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., pd.DataFrame]:
    def read(name: str, *texts: str, ending: str = ".csv") -> pd.DataFrame:
        paths = [tmp_path / f"{name}-{number}{ending}" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_bytes(gzip.compress(text.encode()) if ending.endswith(".gz") else text.encode())
        return RAW[name](paths)

    return read


def groups(name: str, table: Table) -> dict[str, list[str]]:
    """Return the level of each row by the registry's attributes, which have to know every value."""
    attributes = {item.name: item for item in info(name).sensitive}
    assert set(attributes) <= set(table.attributes)
    return {
        word: [item.levels[k] for k in categorise(table.attributes[word], item)] for word, item in attributes.items()
    }


def test_every_source_is_here():
    here = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in RAW if f'"{name}"' not in here] == []


def test_compas(read):
    frame = read("compas", COMPAS)
    assert len(frame) == 2 and "name" not in frame and "score_text" not in frame
    table = TASKS["compas"](frame)
    assert table.target.tolist() == [0, 1] and "two_year_recid" not in table.features
    assert groups("compas", table) == {
        "gender": ["female", "male"],
        "race": ["Caucasian", "Other"],
        "age": [info("compas").attribute("age").levels[k] for k in (0, 1)],
    }


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_lsac(read, ending):
    frame = read("lsac", LSAC, ending=ending)
    table = TASKS["lsac"](frame)
    assert table.target.tolist() == [3.5, 3.0, 2.8] and not {"ugpa", "zgpa", "gpa"} & set(table.features)
    assert groups("lsac", table) == {"gender": ["female", "male", "male"], "race": ["white", "black", "asian"]}
    table = TASKS["lsac-law-school"](frame)
    assert table.target.tolist() == [1.5, -0.5] and "zgpa" not in table.features and "lsat" in table.features
    published = TASKS["lsac-law-school"](frame, as_published=True)
    assert published.target.tolist() == [1.5] and "zgpa" in published.features and "lsat" not in published.features
    assert published.cells is not None and published.cells.tolist() == ["female & white"]


def test_dutch_in_both_forms(read, tmp_path):
    frame = read("dutch", DUTCH, ending=".arff")
    frame.rename(columns=str.capitalize).to_parquet(tmp_path / "dutch.parquet")
    pd.testing.assert_frame_equal(RAW["dutch"]([tmp_path / "dutch.parquet"]).astype(object), frame.astype(object))
    table = TASKS["dutch"](frame)
    assert table.target.tolist() == [1, 0, 1] and list(table.features) == ["sex", "age"]
    assert groups("dutch", table) == {
        "sex": ["male", "female", "male"],
        "age": ["15 to 19", "55 or over", "55 or over"],
    }
    assert len(TASKS["dutch"](frame, as_published=True).target) == 2


def test_parkinsons(read):
    frame = read("parkinsons", PARKINSONS)
    table = TASKS["parkinsons"](frame)
    assert table.target.tolist() == [34.4, 26.0] and list(table.features) == ["age", "sex", "test_time", "PPE"]
    assert groups("parkinsons", table) == {"gender": ["male", "female"]}
    assert "subject#" in TASKS["parkinsons"](frame, as_published=True).features


def test_arrhythmia_and_the_mirror_that_lost_a_value(read, monkeypatch):
    def line(age: str, sex: int, height: int, missing: tuple[int, ...], diagnosis: int) -> str:
        numbers = [age, str(sex), str(height), "60", *("?" if k in missing else "1" for k in range(5, 280))]
        return ",".join([*numbers, str(diagnosis)])

    rows = [
        line("75", 0, 170, (14,), 1),
        line("40", 1, 160, (), 10),
        line("1", 0, 780, (), 1),
        line("9", 1, 9, (20,), 1),
    ]
    text = "\n".join(rows) + "\n"
    with pytest.raises(ValueError, match="neither the canonical file nor the known mirror"):
        read("arrhythmia", text)
    monkeypatch.setattr(arrhythmia, "CANONICAL", hashlib.sha256(text.encode()).hexdigest())
    frame = read("arrhythmia", text)
    pd.testing.assert_frame_equal(read("arrhythmia", "NaN" + text[2:].replace("?", "NaN")), frame)
    table = TASKS["arrhythmia"](frame)
    assert table.target.tolist() == [0, 1] and table.features.shape == (2, 278) and "diagnosis" not in table.features
    assert groups("arrhythmia", table) == {"gender": ["male", "female"]}


@pytest.mark.parametrize("separator", [";", ","])
def test_student(read, separator):
    frame = read("student", STUDENT.replace(";", separator))
    table = TASKS["student"](frame)
    assert table.target.tolist() == [7, 12] and list(table.features) == ["school", "sex", "age"]
    assert groups("student", table) == {"gender": ["female", "male"]}
    assert "G3" in TASKS["student"](frame, as_published=True).features


def test_government(read):
    table = TASKS["acs2018-government"](read("government", GOVERNMENT, ending=".csv.gz"))
    assert table.target.tolist() == [0, 1] and "salary" not in table.features
    assert table.features.occupation.tolist() == ["13", "29"] and table.features.industry.tolist() == ["92", "61"]
    assert groups("acs2018-government", table) == {
        "gender": ["male", "female"],
        "race": ["black", "mix"],
        "age": ["40 or over", "under 40"],
    }


def test_pums2011(read):
    made = persons(300)
    frame = read("pums2011", made.to_csv(index=False), ending=".csv.gz")
    adults = made[(made.AGEP > 16) & (made.PINCP > 100) & (made.WKHP > 0) & (made.PWGTP >= 1)]
    table = TASKS["pums2011-income"](frame)
    np.testing.assert_array_equal(table.target, adults.PINCP > 50_000)
    assert "PINCP" not in table.features
    for name in sets("pums2011"):
        table = TASKS[name](frame)
        assert 0 < table.target.mean() < 1 and len(table.features) == len(table.target)
        assert set(groups(name, table)["gender"]) == {"male", "female"}


def test_acs2012(read):
    frame = read("acs2012", ACS2012)
    for name, labels, left_out in (
        ("acs2012-employment", [1, 1, 0], {"employment", "income", "hrs_work", "time_to_work"}),
        ("acs2012-income", [1, 0], {"employment", "income", "time_to_work"}),
        ("acs2012-travel-time", [1, 0], {"employment", "time_to_work"}),
    ):
        table = TASKS[name](frame)
        assert table.target.tolist() == labels and not left_out & set(table.features)
        assert groups(name, table)["citizen"][:2] == ["citizen", "not a citizen"]


def test_adult(read):
    table = TASKS["adult"](read("adult", ADULT, ending=".data"))
    assert table.target.tolist() == [1, 0] and "income" not in table.features
    assert table.features.workclass.tolist() == ["?", "Private"]
    assert groups("adult", table)["gender"] == ["female", "male"]


def test_german(read):
    frame = read("german", GERMAN, ending=".data")
    table = TASKS["german"](frame)
    assert table.target.tolist() == [1, 0] and "credit" not in table.features
    assert groups("german", table) == {
        "gender": ["female", "male"],
        "age": list(info("german").attribute("age").levels)[::-1],
    }
    assert "credit" in TASKS["german"](frame, as_published=True).features


def test_communities(read):
    columns = ["state", "county", "community", "communityname", "fold", "racepctblack", "racePctWhite"]
    columns += ["racePctAsian", "racePctHisp", "police", "income", "ViolentCrimesPerPop"]
    rows = [
        "8,?,?,a,1,0.1,0.9,0.2,0.3,?,0.5,0.25",
        "9,1,2,b,1,0.8,0.2,0.2,0.3,?,?,0.5",
        "9,1,2,c,2,0.8,0.2,0.1,0.1,1,0.1,0.75",
    ]
    frame = read(
        "communities", "\n".join(rows), "".join(f"@attribute {name} numeric\n" for name in columns), ending=".data"
    )
    table = TASKS["communities"](frame)
    assert table.target.tolist() == [0.25, 0.75] and groups("communities", table) == {"race": ["white", "black"]}
    assert list(table.features) == [*columns[5:9], "income"]
    # As published: the one row that is complete, identifiers included, without the shares.
    published = TASKS["communities"](frame, as_published=True)
    assert published.target.tolist() == [0.75] and list(published.features) == ["police", "income"]
    assert published.cells.tolist() == ["0 black"]

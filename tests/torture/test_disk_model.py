"""What a power cut can leave, in the model of a disk that the campaign uses."""

import random

import torture_disk

OLD, NEW = b"o" * 2000, b"n" * 3000


def states(files, steps, cut):
    """Every content of the disk that a power cut before the step `cut` can leave, as far as chance finds them."""
    found, chance = [], random.Random(0)
    for _ in range(400):
        names = {name: None if content is None else torture_disk._File(content) for name, content in files.items()}
        disk = torture_disk.Disk(dict(names), dict(names))
        disk.run(steps, cut)
        state = disk.after_cut(cut, chance)
        if state not in found:
            found.append(state)
    return found


def content(path):
    return {"do": "content", "paths": [path]}


def synced(path, data):
    return {"do": "fsync", "paths": [path], "content": data.hex()}


def step(do, *paths):
    return {"do": do, "paths": [*paths]}


REPLACED = [step("open", "part"), content("part"), synced("part", NEW), step("rename", "part", "a"), step("fsync", ".")]


def test_a_file_that_nobody_opens_to_write_is_never_torn():
    steps = [content("a"), synced("a", NEW), step("open", "b"), content("a"), synced("a", OLD + NEW)]
    assert {state["a"] for state in states({"a": OLD}, steps, 3)} == {NEW}
    assert len({state["a"] for state in states({"a": OLD}, steps, 4)}) > 2  # opened again


def test_what_is_written_over_has_any_block_old_or_new_until_it_is_synced():
    found = {state["a"] for state in states({"a": OLD}, [content("a"), synced("a", NEW)], 1)}
    assert {OLD, NEW} <= found
    blocks = {content[:512] + content[512:1024] for content in found if len(content) >= 1024}
    assert {b"o" * 512 + b"n" * 512, b"n" * 512 + b"o" * 512} <= blocks
    assert {len(OLD), len(NEW)} < {len(content) for content in found}


def test_a_renamed_file_is_old_or_new_until_its_folder_is_synced():
    found = states({"a": OLD}, REPLACED, 4)
    assert {state["a"] for state in found} == {OLD, NEW}
    assert {"part" in state for state in found if state["a"] == NEW} == {True, False}  # it may have both names
    assert states({"a": OLD}, REPLACED, 5) == [{"a": NEW}]


def test_the_sync_of_one_folder_says_nothing_of_the_names_in_another():
    files = {"whole": None, "whole/a": NEW, "a": OLD}
    moved = [step("rename", "whole/a", "a"), step("fsync", "."), step("rmdir", "whole"), step("fsync", ".")]
    assert {state["a"] for state in states(files, moved, 1)} == {OLD, NEW}
    after = states(files, moved, 2)
    assert {state["a"] for state in after} == {NEW}
    assert {"whole/a" in state for state in after} == {True, False}
    assert states(files, moved, 4) == [{"a": NEW}]


def test_a_new_file_without_a_synced_folder_may_be_gone_and_without_its_own_sync_may_have_any_content():
    steps = [step("open", "b"), content("b"), synced("b", NEW)]
    found = states({}, steps, 2)
    assert {"b" in state for state in found} == {True, False}
    assert {b"", NEW, bytes(len(NEW))} <= {state["b"] for state in found if "b" in state}
    assert {state.get("b") for state in states({}, steps, 3)} == {None, NEW}


def test_a_file_that_a_library_made_unseen_is_there_from_its_first_sync():
    steps = [synced("part", NEW), step("rename", "part", "a"), step("fsync", ".")]
    assert states({}, steps, 3) == [{"a": NEW}]
    found = states({}, steps, 1)
    assert {} in found
    assert {"part": NEW} in found

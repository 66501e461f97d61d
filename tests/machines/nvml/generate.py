"""Turns recorded NVML answers into C tables. Usage: generate.py FOLDER SOURCE.c …: writes answers.h and stubs.h

NVML's own wrappers (pynvml) say how each function is called: each is run on a library that notes the arguments and
fills them so that the wrapper returns what was recorded. What that took, byte for byte, is the table. So no signature
is written down here, and an answer that a wrapper would read otherwise than recorded cannot get in unnoticed.
Functions that the SOURCE files define themselves get no replaying stub; their recorded answers are still in the table.
"""

import ctypes
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

from tracing import Gpu, assign, fillers, members_of, plain, pynvml, traced, within

__all__ = ["RECORDINGS", "plain", "recorded_devices", "within"]
HERE = Path(__file__).parent
RECORDINGS = (HERE.parents[1] / "data" / "recordings" / "h200-x8" / "nvml.json", HERE / "further.json")
NULS = b"\0"
PARTS = {"sram": "nvmlDeviceGetSramEccErrorStatus", "fabric": "nvmlDeviceGetGpuFabricInfoV"}
STRUCTURES = {
    "sram": (pynvml.c_nvmlEccSramErrorStatus_v1_t,),
    "fabric": (pynvml.c_nvmlGpuFabricInfo_v3_t, pynvml.c_nvmlGpuFabricInfo_v2_t, pynvml.c_nvmlGpuFabricInfo_t),
}
UNSIGNED, UNSIGNED_LONG_LONG = 1, 3
FIELD_TYPES = {82: UNSIGNED, 230: UNSIGNED}
"""As the driver gives them; the NVLink counters are in the recording without a type."""


class Table:
    """shapes: function → argument shape; rows: function → inputs → GPU (-1: of no GPU) → (code, outs)."""

    def __init__(self):
        self.shapes, self.rows, self.not_played = {}, defaultdict(lambda: defaultdict(dict)), []
        self.roundabout = []

    def add(self, gpu, name, tracer):
        """A wrapper that picks from what another tells (GetPendingEccMode of GetEccMode) must not overrule that one."""
        if tracer.function.startswith(name):
            self.put(gpu, tracer)
        else:
            self.roundabout.append((gpu, tracer))

    def put(self, gpu, tracer, overrule=True):
        code, inputs, results = tracer.row
        if gpu >= 0:
            inputs = inputs[1:]
        self.shapes[tracer.function] = tracer.shape
        by_gpu = self.rows[tracer.function][inputs]
        if overrule or gpu not in by_gpu:
            by_gpu[gpu] = (code, results)

    def play(self, gpu, name, arguments, recorded):
        """Find what makes the wrapper `name` return what was recorded, and keep it."""
        wrapper = getattr(pynvml, name)
        given = ([Gpu(gpu)] if gpu >= 0 else []) + arguments
        if "error" in recorded:
            called, _ = traced(wrapper, given, None, recorded["error"])
            for tracer in called[:1]:
                self.add(gpu, name, tracer)
            return
        for fill in fillers(recorded["answer"], members_of(wrapper, given)):
            try:
                called, answer = traced(wrapper, given, fill)
            except (TypeError, ValueError, AttributeError, IndexError):
                continue
            if called and within(recorded["answer"], answer):
                for tracer in called:
                    self.add(gpu, name, tracer)
                return
        self.not_played.append(f"{name}{arguments} GPU{gpu}")

    def play_part(self, gpu, part, recorded):
        """A structure that the caller brings."""
        for structure in STRUCTURES[part]:
            info = structure()
            name = PARTS[part] if hasattr(info, "version") else PARTS[part].removesuffix("V")
            known = {key: value for key, value in recorded.items() if hasattr(info, key)}
            called, _ = traced(
                getattr(pynvml, name), [Gpu(gpu), ctypes.byref(info)], lambda outs, known=known: assign(outs[0], known)
            )
            self.put(gpu, called[0])


def recorded_devices(recordings):
    """GPU → function with its arguments → {"answer": …} or {"error": …}."""
    devices = [{} for _ in recordings[0]["devices"]]
    for recording in recordings:
        for at, device in enumerate(devices):
            device.update({**recording["all"], **recording["devices"][at]})
    return devices


def main(out, sources):
    recordings = [json.loads(path.read_text()) for path in RECORDINGS]
    table = Table()
    for recording in recordings:
        for name, answer in recording["system"].items():
            table.play(-1, name, [], {"answer": answer})
    for gpu, device in enumerate(recorded_devices(recordings)):
        for key, recorded in device.items():
            name, _, rest = key.partition("(")
            if name in PARTS:
                table.play_part(gpu, name, recorded)
            elif name.startswith("nvml"):
                table.play(gpu, name, [int(one) for one in rest.rstrip(")").split(",") if one], recorded)
        for other, by_kind in device["p2p"].items():
            for kind, status in by_kind.items():
                table.play(gpu, "nvmlDeviceGetP2PStatus", [Gpu(other), int(kind)], {"answer": status})
        for other, common in device["topology"].items():
            table.play(gpu, "nvmlDeviceGetTopologyCommonAncestor", [Gpu(other)], {"answer": common})
    for gpu, tracer in table.roundabout:
        table.put(gpu, tracer, overrule=False)
    if table.not_played:
        sys.exit("generate.py: no way found to play " + ", ".join(sorted(set(table.not_played))))
    names = stubs(table, recordings[1]["lacking"], sources)
    (Path(out) / "answers.h").write_text(header(table, recordings))
    (Path(out) / "stubs.h").write_text("".join(f"REPLAY({name})\n" for name in names))


def stubs(table, lacking, sources):
    """The functions that only replay: all that pynvml knows and the recorded driver has, but those written manually."""
    text = Path(pynvml.__file__).read_text("utf-8")
    known = set(re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"', text)) | set(table.shapes)
    by_hand = {
        name for each in sources for name in re.findall(r"^PUBLIC .*?(nvml\w+)\(", Path(each).read_text(), re.MULTILINE)
    }
    return sorted(known - set(lacking) - by_hand)


# C


def literal(content):
    """Without the zeros at its end: C copies what is here and clears the rest."""
    return '"' + "".join(f"\\{byte:03o}" for byte in content.rstrip(NULS)) + '"'


def row(function, inputs, gpu, code, outs):
    asked = ", ".join(str(one & 0xFFFFFFFF) for one in inputs) or "0"
    given = ", ".join(f"{{{at}, {len(value)}, {len(value.rstrip(NULS))}, {literal(value)}}}" for at, value in outs)
    return f'    {{"{function}", {gpu}, {len(inputs)}, {{{asked}}}, {code}, {len(outs)}, {{{given or "{0}"}}}}},'


def rows_of(function, by_inputs, every):
    """Rows of one function; what all GPUs say alike is one row (GPU -1)."""
    for inputs, by_gpu in sorted(by_inputs.items()):
        common = by_gpu.get(0) if len(by_gpu) == every and len({repr(each) for each in by_gpu.values()}) == 1 else None
        if common:
            yield row(function, inputs, -1, *common)
            continue
        for gpu, (code, outs) in sorted(by_gpu.items()):
            yield row(function, inputs, gpu, code, outs)


def profile(one):
    placed = ", ".join(f"{{{start}, {size}}}" for start, size in one["placements"])
    numbers = ", ".join(
        str(one[name])
        for name in (
            "profile", "id", "isP2pSupported", "sliceCount", "instanceCount", "multiprocessorCount", "copyEngineCount",
            "decoderCount", "encoderCount", "jpegCount", "ofaCount", "memorySizeMB",
        )
    )  # fmt: skip
    return f'    {{{numbers}, "{one["name"]}", {len(one["placements"])}, {{{placed}}}}},'


def header(table, recordings):
    further, every = recordings[1], len(recordings[0]["devices"])
    graphics = further["supported_clocks"]["graphics"]
    lines = ["/* Made by generate.py. */", f"#define GPUS {every}"]
    lines += [f"#define GRAPHICS_CLOCK_{name.upper()} {value}" for name, value in graphics.items()]
    clocks = further["supported_clocks"]["memory"]
    lines.append(f"static const unsigned MEMORY_CLOCKS[] = {{{', '.join(map(str, clocks))}}};")
    lines.append("static const struct profile PROFILES[] = {")
    lines += [profile(one) for one in further["mig_profiles"]] + ["};"]
    lines.append("static const struct error_text ERROR_TEXTS[] = {")
    lines += [f'    {{{code}, "{text}"}},' for code, text in further["error_strings"].items()] + ["};"]
    lines.append("static const struct field FIELDS[] = {")
    for gpu, device in enumerate(recordings[0]["devices"]):
        for number, value in device["fields"].items():
            kind = FIELD_TYPES.get(int(number), UNSIGNED_LONG_LONG)
            lines.append(f"    {{{gpu}, {number}, {kind}, {value}}},")
    lines += ["};", "static const struct shape SHAPES[] = {"]
    lines += [f'    {{"{name}", "{shape}"}},' for name, shape in sorted(table.shapes.items())]
    lines += ["};", "static const struct row ROWS[] = {"]
    for function in sorted(table.rows):
        lines += rows_of(function, table.rows[function], every if "d" in table.shapes[function] else 1)
    lines.append("};")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

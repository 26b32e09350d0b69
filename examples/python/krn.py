"""Krn kernels from Python: reads what `krn build --emit fat` writes, and launches the PTX itself, through CuPy.

    import cupy, krn
    module = krn.load("saxpy.json")                      # the image for this GPU
    z = module.saxpy(alpha=2.0, x=x, y=y)                # arrays by name; results are allocated and returned

docs/manifest.md describes the document. What is needed of it is here: which variant of a kernel runs, and which launches
a call comes to (`Kernel.variant`, `Kernel.plan`, without a GPU), their parameters, scratch memory, the record of failed
checks. Structs of arrays are left out:
arrays here have scalar elements.
"""
import base64
import json
import math

DTYPES = {"bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4",
          "u64": "u8", "f16": "f2", "f32": "f4", "f64": "f8"}


# Of the driver: a kernel has to be told before it is launched with more than 48 KiB.
MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class KrnError(Exception):
    """The arguments do not fit the kernel, or it failed on the device."""


def truncate(a, b):
    """Division of integers towards zero, by zero 0."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def divide(a, b):
    return truncate(a, b) if isinstance(a, int) and isinstance(b, int) else a / b if b else math.nan


def remainder(a, b):
    return (0 if b == 0 else a - truncate(a, b) * b) if isinstance(a, int) else math.fmod(a, b)


BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": divide, "rem": remainder,
    "ceil_div": lambda a, b: 0 if b == 0 else -(-a // b), "min": min, "max": max,
    "equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b, "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b, "greater_equal": lambda a, b: a >= b,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b,
}


def evaluate(expr, symbols):
    """An expression of the manifest over the values of the kernel's symbols."""
    (kind, value), = expr.items()
    if kind == "symbol":
        return symbols[value]
    if kind == "unary":
        operand = evaluate(value[1], symbols)
        return not operand if value[0] == "not" else -operand
    if kind == "binary":
        return BINARY[value[0]](evaluate(value[1], symbols), evaluate(value[2], symbols))
    return value


class Kernel:
    """One kernel of an image."""

    def __init__(self, manifest):
        self.manifest = manifest
        self.name = manifest["name"]
        self.arguments = manifest["arguments"]

    def symbols(self, shapes, values):
        """The values of the symbols: dimensions from the shapes of arrays by name, parameters from `values`."""
        found = []
        for symbol in self.manifest["symbols"]:
            if symbol["kind"] == "counter":
                found.append(0)
                continue
            (kind, place), = symbol["kind"].items()
            name = self.arguments[place["argument"]]["name"]
            given = shapes if kind == "dim" else values
            if name not in given:
                raise KrnError(f"`{self.name}` needs `{name}`")
            if kind == "dim":
                extent, linear = given[name][place["axis"]], place.get("extent", {"factor": 1, "offset": 0})
                found.append(max((extent - linear["offset"]) // linear["factor"], 0))
            else:
                found.append(given[name])
        for fact in self.manifest["facts"]:
            if not evaluate(fact["condition"], found):
                raise KrnError(f"`{self.name}`: `where {fact['text']}` does not hold")
        return found

    def shape(self, buffer, symbols):
        return tuple(evaluate(extent, symbols) for extent in buffer["extents"])

    def variant(self, symbols):
        """The variant that runs: the first whose guard holds, else the last, whose code is right for all sizes."""
        def holds(guard):
            conditions = guard.get("relies_on", []) + guard.get("chosen_by", [])
            return all(evaluate(condition, symbols) for condition in conditions)

        variants = self.manifest["variants"]
        return next((variant for variant in variants if holds(variant["guard"])), variants[-1])

    def plan(self, symbols):
        """What a call launches, in order: (launch, grid, bytes of shared memory, values of the symbols)."""
        yield from self._steps(self.variant(symbols)["plan"], list(symbols))

    def _steps(self, steps, symbols):
        for step in steps:
            (kind, step), = step.items()
            if kind == "launch":
                grid = tuple(evaluate(extent, symbols) for extent in step["grid"])
                if 0 not in grid:
                    yield step, grid, evaluate(step["shared_bytes"], symbols), list(symbols)
            elif kind == "branch":
                yield from self._steps(step["then" if evaluate(step["condition"], symbols) else "otherwise"], symbols)
            elif kind == "while":
                raise KrnError(f"`{self.name}`: what the device computes says how often it launches: use the `krn` package")
            else:
                bounds = [evaluate(step[bound], symbols) for bound in ("low", "high", "step")]
                for symbols[step["symbol"]] in range(bounds[0], bounds[1], max(1, bounds[2])):
                    yield from self._steps(step["body"], symbols)


class Module:
    """An image of the document, loaded on the current GPU; its kernels are its methods."""

    def __init__(self, image, capability):
        import cupy

        self.source = image["manifest"]["source"]
        self.kernels = {kernel["name"]: Kernel(kernel) for kernel in image["manifest"]["kernels"]}
        self.module = cupy.cuda.function.Module()
        # Machine code is for one generation of GPUs; the driver compiles PTX for all later ones.
        made = int(image["target"][3:].rstrip("a"))
        if "cubin" in image and made // 10 == capability // 10 and made <= capability:
            self.module.load(base64.b64decode(image["cubin"]))
        else:
            self.module.load(image["ptx"].encode() + b"\0")
        self.statics = [self.module.get_global_var(static["symbol"]) for static in image["manifest"]["statics"]]

    def __getattr__(self, name):
        if name not in self.kernels:
            raise AttributeError(f"{self.source} has no kernel `{name}`; it has {', '.join(self.kernels)}")
        return lambda **given: self.call(self.kernels[name], given)

    def call(self, kernel, given):
        """Launches on the current stream. Returns the results that were not given: one, or several as a tuple."""
        import cupy
        import numpy

        known = [argument["name"] for argument in kernel.arguments]
        for name in given:
            if name not in known:
                raise KrnError(f"`{kernel.name}` has no argument `{name}`; it has {', '.join(known)}")
        shapes = {name: value.shape for name, value in given.items() if isinstance(value, cupy.ndarray)}
        values = {name: value for name, value in given.items() if name not in shapes}
        symbols = kernel.symbols(shapes, values)
        arrays, made = [], []
        for argument in kernel.arguments:
            if "value" in argument["kind"]:
                arrays.append(None)
                continue
            array, name = argument["kind"]["array"], argument["name"]
            shape, dtype = kernel.shape(array["buffer"], symbols), dtype_of(array["buffer"])
            if name not in given and array["direction"] == "out":
                given[name] = cupy.empty(shape, dtype)
                made.append(given[name])
            if name not in given or given[name].shape != shape or given[name].dtype != dtype:
                raise KrnError(f"`{kernel.name}`: `{name}` must be an array of {dtype} with shape {shape}")
            if not given[name].flags.c_contiguous:
                raise KrnError(f"`{kernel.name}`: `{name}` must be contiguous")
            if given[name].data.ptr % 16 != 0:
                raise KrnError(f"`{kernel.name}`: `{name}` must begin at a multiple of 16 bytes: pass a copy of it")
            arrays.append(given[name])
        launches = list(kernel.plan(symbols))
        used = {a["scratch"]["scratch"] for launch, *_ in launches for a in launch["arguments"] if "scratch" in a}
        scratch = {at: cupy.empty(kernel.shape(buffer, symbols), dtype_of(buffer))
                   for at, buffer in enumerate(kernel.variant(symbols)["scratch"]) if at in used}
        record = cupy.zeros(9, "u8") if any("error_record" in launch["arguments"] for launch, *_ in launches) else None
        for launch, grid, shared, symbols in launches:
            params = []
            for argument in launch["arguments"]:
                if argument == "error_record":
                    params.append(record.data.ptr)
                elif "argument" in argument:
                    params.append(arrays[argument["argument"]["argument"]].data.ptr)
                elif "static" in argument:
                    params.append(self.statics[argument["static"]])
                elif "scratch" in argument:
                    params.append(scratch[argument["scratch"]["scratch"]].data.ptr)
                else:
                    symbol = argument["symbol"]
                    params.append(numpy.dtype(DTYPES[kernel.manifest["symbols"][symbol]["scalar"]]).type(symbols[symbol]))
            params = [numpy.uint64(param) if isinstance(param, int) else param for param in params]
            function = self.module.get_function(launch["entry"])
            if shared > 48 * 1024:
                cupy.cuda.driver.funcSetAttribute(function.ptr, MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
            function(grid, tuple(launch["block"]), tuple(params), shared_mem=shared)
        if record is not None:
            self.check(kernel, record.get())
        return made[0] if len(made) == 1 else tuple(made) or None

    def check(self, kernel, record):
        """A failed check, as the device has left word of it."""
        claimed, site = int(record[0]) & 0xFFFFFFFF, int(record[0]) >> 32
        if claimed:
            place = kernel.manifest["sites"][site]
            numbers = record.view("i8")[1:]
            if "assertion" in place:
                names = place["assertion"]["indices"]
                at = ", ".join(f"{name} = {value}" for name, value in zip(names, numbers))
                raise KrnError(f"{self.source}:{place['line']}:{place['column']}: the assertion "
                               f"`{place['assertion']['text']}` does not hold{' for ' if at else ''}{at}")
            index, extent, value = numbers[:3]
            if "injection" in place:
                fact = kernel.manifest["injections"][place["injection"]]
                raise KrnError(f"{self.source}:{place['line']}:{place['column']}: `{place['array']}` holds {value} at "
                               f"position {extent - 1} and at position {index}; the kernel says `where {fact['text']}`")
            raise KrnError(f"{self.source}:{place['line']}:{place['column']}: index {index} is outside axis "
                           f"{place['axis']} of `{place['array']}`, whose extent is {extent}")


def dtype_of(buffer):
    leaves = buffer["element"]["leaves"]
    if len(leaves) != 1 or leaves[0]["path"] or leaves[0]["scalar"] not in DTYPES:
        raise KrnError(f"`{buffer['name']}` has elements of type `{buffer['element']['name']}`: scalars only, here")
    return DTYPES[leaves[0]["scalar"]]


def image_for(document, capability):
    """The newest image that runs on a GPU of this capability (90 for sm_90); any GPU's with None."""
    if document["format"] != "krn fat 2":
        raise KrnError(f"the document has the format {document['format']}")

    def needs(image):
        return int(image["target"][3:].rstrip("a"))

    def runs(image):
        own = image["target"].endswith("a")
        return capability is None or (needs(image) == capability if own else needs(image) <= capability)

    images = [image for image in document["images"] if runs(image)]
    if not images:
        raise KrnError(f"nothing for a GPU of capability {capability}")
    return max(images, key=lambda image: (needs(image), image["target"]))


def load(path):
    """The document's image for the current GPU."""
    import cupy

    capability = int(cupy.cuda.Device().compute_capability)
    with open(path) as file:
        return Module(image_for(json.load(file), capability), capability)

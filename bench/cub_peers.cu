// CUB's device-wide algorithms behind a C interface, for peers.py; built by nvcc.
#include <cub/cub.cuh>

// Runs an algorithm, or with `temp` null stores in `bytes` how much temporary memory it wants. Returns the CUDA error.
// `index` is for argmax. Counts above 2^31 are passed as 64-bit numbers.
extern "C" int krn_bench_cub(int algorithm, void *temp, size_t *bytes, const void *in, void *out, void *index,
                             long long n) {
    const float *f = static_cast<const float *>(in);
    const int *i = static_cast<const int *>(in);
    switch (algorithm) {
    case 0: return cub::DeviceReduce::Sum(temp, *bytes, f, static_cast<float *>(out), n);
    case 1: return cub::DeviceReduce::Sum(temp, *bytes, i, static_cast<int *>(out), n);
    case 2: return cub::DeviceReduce::Max(temp, *bytes, f, static_cast<float *>(out), n);
#ifndef WITHOUT_ARGMAX
    case 3:
        return cub::DeviceReduce::ArgMax(temp, *bytes, f, static_cast<float *>(out), static_cast<long long *>(index), n);
#endif
    case 4:
        return cub::DeviceHistogram::HistogramEven(temp, *bytes, static_cast<const unsigned char *>(in),
                                                   static_cast<int *>(out), 257, 0, 256, static_cast<int>(n));
    default: return cudaErrorInvalidValue;
    }
}

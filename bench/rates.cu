// What a multiprocessor of this GPU does in a cycle, and what takes how many: lines `NAME number`, which bench/rates.py
// reads. Cycles are those of the clock that the work ran at. Each number is the median of several runs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define CHECK(call)                                                                                 \
    do {                                                                                            \
        cudaError_t error = call;                                                                   \
        if (error != cudaSuccess) {                                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                          \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

constexpr int RUNS = 9, THREADS = 256;
// What no result is, so that results count as used.
constexpr float NEVER = 12345.0f;

// Reads an array so many times, 16 bytes a thread at a time, past the multiprocessor's own cache.
__global__ void read(const float4 *from, size_t count, int times, float *to) {
    float4 sum = {};
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (int time = 0; time < times; time++)
        for (size_t at = blockIdx.x * (size_t)blockDim.x + threadIdx.x; at < count; at += step) {
            float4 next;
            asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(next.x), "=f"(next.y), "=f"(next.z), "=f"(next.w)
                         : "l"(from + at));
            sum.x += next.x, sum.y += next.y, sum.z += next.z, sum.w += next.w;
        }
    if (sum.x + sum.y + sum.z + sum.w == NEVER) *to = sum.x;
}

// Reads the same part of shared memory again and again, 16 bytes a thread.
__global__ void shared(int rounds, float *to) {
    __shared__ float4 part[THREADS];
    part[threadIdx.x] = make_float4(1, 2, 3, 4);
    __syncthreads();
    float4 sum = {};
    uint32_t at = (uint32_t)__cvta_generic_to_shared(part + threadIdx.x);
#pragma unroll 8
    for (int round = 0; round < rounds; round++) {
        float4 next;
        asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(next.x), "=f"(next.y), "=f"(next.z), "=f"(next.w)
                     : "r"(at));
        sum.x += next.x, sum.y += next.y, sum.z += next.z, sum.w += next.w;
    }
    if (sum.x + sum.y + sum.z + sum.w == NEVER) *to = sum.x;
}

// Multiplications with additions, so many chains a thread; the cycles of one warp.
template <int CHAINS> __global__ void fused(int rounds, float by, float *to, long long *cycles) {
    float chain[CHAINS];
    for (int at = 0; at < CHAINS; at++) chain[at] = at + threadIdx.x;
    long long begin = clock64();
#pragma unroll 8
    for (int round = 0; round < rounds; round++)
#pragma unroll
        for (int at = 0; at < CHAINS; at++) chain[at] = fmaf(chain[at], by, by);
    if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
    float sum = 0;
    for (int at = 0; at < CHAINS; at++) sum += chain[at];
    if (sum == NEVER) *to = sum;
}

// Matrix instructions of f16 with sums of f32, so many chains a warp; if LOADS, each needs a fragment that is loaded
// behind the one before.
template <int CHAINS, bool LOADS> __global__ void products(int rounds, float *to, long long *cycles) {
    __shared__ alignas(16) uint32_t tile[1024];
    for (int at = threadIdx.x; at < 1024; at += blockDim.x) tile[at] = 0;
    __syncthreads();
    float sum[CHAINS][4] = {};
    uint32_t a[4] = {}, b[2] = {};
    uint32_t base = (uint32_t)__cvta_generic_to_shared(tile + threadIdx.x % 32 * 4);
    long long begin = clock64();
    for (int round = 0; round < rounds; round++) {
        if (LOADS)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                         : "r"(base + (__float_as_uint(sum[0][0]) & 16)));
#pragma unroll
        for (int at = 0; at < CHAINS; at++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                         "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(sum[at][0]), "+f"(sum[at][1]), "+f"(sum[at][2]), "+f"(sum[at][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
    float all = 0;
    for (int at = 0; at < CHAINS; at++) all += sum[at][0] + sum[at][1] + sum[at][2] + sum[at][3];
    if (all == NEVER) *to = all;
}

// A thread walks a range by itself and adds it up, twice: the second time the first cache has it.
__global__ void walk(const float *from, int terms, float *to, long long *cycles) {
    float sum = 0;
    for (int time = 0; time < 2; time++) {
        long long begin = clock64();
#pragma unroll 4
        for (int at = 0; at < terms; at++) sum += from[at];
        if (sum == NEVER) *to = sum;
        *cycles = clock64() - begin;
    }
}

// Each thread adds up a column of so many rows, a power of two, which the first cache has, again and again.
__global__ void columns(const float *from, int terms, int rows, float *to) {
    float sum = 0;
#pragma unroll 4
    for (int at = 0; at < terms; at++) sum += from[(at & (rows - 1)) * THREADS + threadIdx.x];
    if (sum == NEVER) *to = sum;
}

// As little as a launch can do: each thread an element.
__global__ void little(const float *from, float *to) {
    size_t at = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    to[at] = from[at] + 1.0f;
}

// Gives a run's clock: a multiprocessor counts while the nanoseconds pass.
__global__ void tick(long long *cycles, long long *nanoseconds) {
    long long from, to;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(from));
    long long begin = clock64();
    while (clock64() - begin < 2000000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(to));
    *cycles = clock64() - begin, *nanoseconds = to - from;
}

double median(const std::function<double()> &run) {
    std::vector<double> found;
    for (int at = 0; at < RUNS; at++) found.push_back(run());
    std::sort(found.begin(), found.end());
    return found[RUNS / 2];
}

// Seconds of work on a stream.
double seconds(cudaStream_t stream, const std::function<void()> &work) {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(begin, stream));
    work();
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaEventSynchronize(end));
    float milliseconds;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return milliseconds / 1e3;
}

// Seconds of so many launches in a graph that wait for each other, each of next to nothing.
double chain(int launches, int blocks, float *array) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t runs;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int at = 0; at < launches; at++) little<<<blocks, THREADS, 0, stream>>>(array, array + blocks * THREADS);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&runs, graph, 0));
    CHECK(cudaGraphLaunch(runs, stream));
    double took = seconds(stream, [&] { CHECK(cudaGraphLaunch(runs, stream)); });
    CHECK(cudaGraphExecDestroy(runs));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
    return took;
}

int main() {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    int multiprocessors = device.multiProcessorCount;
    int blocks = device.maxThreadsPerMultiProcessor / THREADS, full = blocks * multiprocessors;
    size_t large = (size_t)2 << 30, small = device.l2CacheSize / 4;
    float *to, *array;
    long long *cycles, *nanoseconds;
    CHECK(cudaMalloc(&to, 16));
    CHECK(cudaMemset(to, 0, 16));
    CHECK(cudaMalloc(&array, large));
    CHECK(cudaMemset(array, 0, large));
    CHECK(cudaMalloc(&cycles, full * sizeof *cycles));
    CHECK(cudaMalloc(&nanoseconds, sizeof *nanoseconds));
    auto first = [&](const std::function<void()> &work) {
        work();
        long long found;
        CHECK(cudaMemcpy(&found, cycles, sizeof found, cudaMemcpyDeviceToHost));
        return (double)found;
    };
    double hertz = median([&] {
        double counted = first([&] { tick<<<1, 1>>>(cycles, nanoseconds); });
        long long passed;
        CHECK(cudaMemcpy(&passed, nanoseconds, sizeof passed, cudaMemcpyDeviceToHost));
        return counted / passed * 1e9;
    });
    // So much of something a cycle and a multiprocessor, of all that a launch does.
    auto rate = [&](const char *name, double all, const std::function<void()> &work) {
        work();
        double found = median([&] { return all / (seconds(0, work) * hertz * multiprocessors); });
        printf("%s %.2f\n", name, found);
    };
    auto wait = [](const char *name, const std::function<double()> &run) { printf("%s %.2f\n", name, median(run)); };

    int rounds = 1 << 15, times = 256;
    const float4 *wide = (const float4 *)array;
    rate("MEMORY", large, [&] { read<<<full, THREADS>>>(wide, large / 16, 1, to); });
    rate("CACHES", (double)times * small, [&] { read<<<full, THREADS>>>(wide, small / 16, times, to); });
    rate("SHARED", (double)full * THREADS * 16 * rounds, [&] { shared<<<full, THREADS>>>(rounds, to); });
    rate("FUSED", (double)full * THREADS * 8 * rounds, [&] {
        fused<8><<<full, THREADS>>>(rounds, 0.5f, to, cycles);
    });
    // Two blocks of four warps a multiprocessor, as tiles of results leave room for.
    double of_one = 16 * 8 * 16 * sizeof(uint16_t);
    rate("PRODUCTS", 2.0 * multiprocessors * 4 * 8 * of_one * rounds, [&] {
        products<8, false><<<2 * multiprocessors, 128>>>(rounds, to, cycles);
    });
    rate("TERMS", (double)full * THREADS * rounds, [&] { columns<<<full, THREADS>>>(array, rounds, 64, to); });
    wait("LAUNCH", [&] { return (chain(201, full, array) - chain(1, full, array)) / 200 * hertz; });
    // A warp for each of four schedulers, of which each waits as long.
    wait("WAIT", [&] {
        return 4 * first([&] { fused<1><<<1, 32>>>(rounds, 0.5f, to, cycles); }) / rounds;
    });
    wait("WAIT_OF_PRODUCTS", [&] {
        return first([&] { products<1, true><<<1, 32>>>(rounds, to, cycles); }) / rounds;
    });
    wait("WAIT_OF_TERMS", [&] {
        int terms = 4096;
        return first([&] { walk<<<1, 1>>>(array, terms, to, cycles); }) / terms;
    });
    fprintf(stderr, "%s, %d multiprocessors at %.0f MHz\n", device.name, multiprocessors, hertz / 1e6);
    return 0;
}

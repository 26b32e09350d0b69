// Conjugate gradients on a grid of n * n points as one writes them in CUDA with a loop of the host, which reads one word back
// a turn, beside `bench/while_loop.krn`. For while_loop.py; built by nvcc (`nvcc -O3 -arch=native while_peer.cu -o while_peer`).
//
//     while_peer N TURNS [RUNS]
//
// Prints three numbers: the median seconds of a solution with as many launches a turn as Krn has (13: each statement its own),
// of one with those that an author would write (8), and the part of the squared residual that is left. Fails where 4 * N turns
// or more leave too much of it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CALL(call) \
    do { \
        const cudaError_t error = (call); \
        if (error != cudaSuccess) { \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
            exit(1); \
        } \
    } while (0)

constexpr int THREADS = 256;
// Pieces that `combine` leaves.
constexpr int FEWER = 8;

// What the device keeps from turn to turn.
struct State {
    float rr, before, pq, beta;
    int turn;
};

// The sum over a block, in thread 0.
__device__ float block_sum(float value) {
    __shared__ float part[THREADS / 32];
    for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(~0u, value, lanes);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < THREADS / 32 ? part[threadIdx.x] : 0.0f;
    for (int lanes = THREADS / 64; lanes > 0; lanes /= 2) value += __shfl_xor_sync(~0u, value, lanes);
    return value;
}

__global__ void begin(const float *__restrict__ b, float *x, float *r, float *p, int count) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    x[i] = 0.0f;
    r[i] = p[i] = b[i];
}

// Pieces of the sum of a * b, in a grid that fills the machine.
__global__ void pieces(const float *__restrict__ a, const float *__restrict__ b, float *part, int count) {
    float sum = 0.0f;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) sum += a[i] * b[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

__device__ float total_of(const float *part, int count) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS) sum += part[i];
    return block_sum(sum);
}

__global__ void first_total(const float *part, int count, State *state) {
    const float sum = total_of(part, count);
    if (threadIdx.x == 0) *state = {sum, 0.0f, 0.0f, 0.0f, 0};
}

// Whether the loop goes on: the word that the host reads.
__global__ void test(const State *state, float tolerance, int limit, int *goes_on) {
    *goes_on = state->rr > tolerance * tolerance && state->turn < limit;
}

__global__ void difference(const float *__restrict__ p, float *q, int n) {
    const int j = blockIdx.x * THREADS + threadIdx.x, i = blockIdx.y;
    if (j >= n) return;
    const float *row = p + (size_t)i * n;
    float sum = 4.0f * row[j];
    if (i > 0) sum -= row[j - n];
    if (i + 1 < n) sum -= row[j + n];
    if (j > 0) sum -= row[j - 1];
    if (j + 1 < n) sum -= row[j + 1];
    q[(size_t)i * n + j] = sum;
}

__global__ void pq_total(const float *part, int count, State *state) {
    const float sum = total_of(part, count);
    if (threadIdx.x == 0) state->pq = sum;
}

__global__ void step_x(float *x, const float *__restrict__ p, const State *state, int count) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) x[i] += state->rr / state->pq * p[i];
}

__global__ void step_r(float *r, const float *__restrict__ q, const State *state, int count) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) r[i] -= state->rr / state->pq * q[i];
}

// Both of them.
__global__ void step(float *x, float *r, const float *__restrict__ p, const float *__restrict__ q, const State *state, int count) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const float alpha = state->rr / state->pq;
    x[i] += alpha * p[i];
    r[i] -= alpha * q[i];
}

__global__ void keep(State *state) { state->before = state->rr; }

// Makes fewer pieces of many.
__global__ void combine(const float *part, int count, float *fewer) {
    float sum = 0.0f;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) sum += part[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) fewer[blockIdx.x] = sum;
}

__global__ void rr_total(const float *part, int count, State *state) {
    const float sum = total_of(part, count);
    if (threadIdx.x == 0) state->rr = sum;
}

__global__ void ratio(State *state) { state->beta = state->rr / state->before; }

__global__ void next_turn(State *state) { state->turn += 1; }

// All that a turn leaves, in one launch.
__global__ void rr_turn(const float *part, int count, State *state) {
    const float sum = total_of(part, count);
    if (threadIdx.x == 0) {
        state->beta = sum / state->rr;
        state->rr = sum;
        state->turn += 1;
    }
}

__global__ void direction(float *p, const float *__restrict__ r, const State *state, int count) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) p[i] = r[i] + state->beta * p[i];
}

struct Problem {
    int n, limit, blocks;
    float *b, *x, *r, *p, *q, *part, *fewer;
    State *state;
    int *goes_on, *word;

    bool read_back(cudaStream_t stream) const {
        test<<<1, 1, 0, stream>>>(state, 0.0f, limit, goes_on);
        CALL(cudaMemcpyAsync(word, goes_on, sizeof(int), cudaMemcpyDeviceToHost, stream));
        CALL(cudaStreamSynchronize(stream));
        return *word != 0;
    }

    void solve(cudaStream_t stream, bool each_statement) const {
        const int count = n * n, grid = (count + THREADS - 1) / THREADS;
        const dim3 rows((n + THREADS - 1) / THREADS, n);
        begin<<<grid, THREADS, 0, stream>>>(b, x, r, p, count);
        pieces<<<blocks, THREADS, 0, stream>>>(r, r, part, count);
        first_total<<<1, THREADS, 0, stream>>>(part, blocks, state);
        while (read_back(stream)) {
            difference<<<rows, THREADS, 0, stream>>>(p, q, n);
            pieces<<<blocks, THREADS, 0, stream>>>(p, q, part, count);
            pq_total<<<1, THREADS, 0, stream>>>(part, blocks, state);
            if (each_statement) {
                step_x<<<grid, THREADS, 0, stream>>>(x, p, state, count);
                step_r<<<grid, THREADS, 0, stream>>>(r, q, state, count);
                keep<<<1, 1, 0, stream>>>(state);
                pieces<<<blocks, THREADS, 0, stream>>>(r, r, part, count);
                combine<<<FEWER, THREADS, 0, stream>>>(part, blocks, fewer);
                rr_total<<<1, THREADS, 0, stream>>>(fewer, FEWER, state);
                ratio<<<1, 1, 0, stream>>>(state);
                direction<<<grid, THREADS, 0, stream>>>(p, r, state, count);
                next_turn<<<1, 1, 0, stream>>>(state);
            } else {
                step<<<grid, THREADS, 0, stream>>>(x, r, p, q, state, count);
                pieces<<<blocks, THREADS, 0, stream>>>(r, r, part, count);
                rr_turn<<<1, THREADS, 0, stream>>>(part, blocks, state);
                direction<<<grid, THREADS, 0, stream>>>(p, r, state, count);
            }
        }
    }

    double seconds(cudaStream_t stream, bool each_statement, int runs) const {
        std::vector<double> times;
        for (int run = -2; run < runs; run++) {
            CALL(cudaStreamSynchronize(stream));
            const auto start = std::chrono::steady_clock::now();
            solve(stream, each_statement);
            CALL(cudaStreamSynchronize(stream));
            const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
            if (run >= 0) times.push_back(time.count());
        }
        CALL(cudaGetLastError());
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
    }
};

int main(int argument_count, char **arguments) {
    if (argument_count < 3) {
        fprintf(stderr, "usage: while_peer N TURNS [RUNS]\n");
        return 1;
    }
    Problem problem = {};
    problem.n = atoi(arguments[1]);
    problem.limit = atoi(arguments[2]);
    const int runs = argument_count > 3 ? atoi(arguments[3]) : 15;
    if (problem.n < 1 || problem.n > 32768 || problem.limit < 1 || runs < 1) {
        fprintf(stderr, "N from 1 to 32768, TURNS and RUNS from 1 on\n");
        return 1;
    }
    const size_t count = (size_t)problem.n * problem.n, bytes = count * sizeof(float);
    int device, processors;
    CALL(cudaGetDevice(&device));
    CALL(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    problem.blocks = std::min<long long>(4 * processors, (count + THREADS - 1) / THREADS);
    std::vector<float> host(count);
    unsigned seed = 1;
    double before = 0.0;
    for (float &b : host) {
        seed = seed * 1664525u + 1013904223u;
        b = (seed >> 8) / 16777216.0f;
        before += (double)b * b;
    }
    float **const arrays[] = {&problem.b, &problem.x, &problem.r, &problem.p, &problem.q};
    for (float **array : arrays) CALL(cudaMalloc(array, bytes));
    CALL(cudaMalloc(&problem.part, problem.blocks * sizeof(float)));
    CALL(cudaMalloc(&problem.fewer, FEWER * sizeof(float)));
    CALL(cudaMalloc(&problem.state, sizeof(State)));
    CALL(cudaMalloc(&problem.goes_on, sizeof(int)));
    CALL(cudaMallocHost(&problem.word, sizeof(int)));
    CALL(cudaMemcpy(problem.b, host.data(), bytes, cudaMemcpyHostToDevice));
    cudaStream_t stream;
    CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CALL(cudaDeviceSynchronize());
    double left[2], times[2];
    for (int which = 0; which < 2; which++) {
        times[which] = problem.seconds(stream, which == 0, runs);
        State state;
        CALL(cudaMemcpy(&state, problem.state, sizeof(State), cudaMemcpyDeviceToHost));
        left[which] = state.rr / before;
        // So many turns solve it, as far as f32 can.
        const double most = problem.limit >= 4 * problem.n ? 1e-6 : 1e30;
        if (!(left[which] < most) || state.turn != problem.limit) {
            fprintf(stderr, "%g of the squared residual is left after %d turns\n", left[which], state.turn);
            return 1;
        }
    }
    printf("%.9g %.9g %.3g\n", times[0], times[1], left[0]);
    return 0;
}

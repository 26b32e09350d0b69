// Kernels as a plain CUDA C++ author writes them, timed by peers.py beside Krn's; and one that measures the arithmetic
// units. Compiled by nvcc to a cubin, or by NVRTC where there is no nvcc.

struct Pair {
    float x, y;
};

extern "C" __global__ void add(const float *a, const float *b, float *c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void axpy(float alpha, const float *x, float *y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = alpha * x[i] + y[i];
}

// n is the length of a and b; with offset 0 this is `add`.
extern "C" __global__ void read_offset(const float *a, const float *b, float *c, unsigned n, unsigned offset) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, k = i + offset;
    if (k < n) c[i] = a[k] + b[k];
}

extern "C" __global__ void read_offset_unroll4(const float *a, const float *b, float *c, unsigned n, unsigned offset) {
    unsigned i = blockIdx.x * blockDim.x * 4 + threadIdx.x, k = i + offset, s = blockDim.x;
    if (k < n) c[i] = a[k] + b[k];
    if (k + s < n) c[i + s] = a[k + s] + b[k + s];
    if (k + 2 * s < n) c[i + 2 * s] = a[k + 2 * s] + b[k + 2 * s];
    if (k + 3 * s < n) c[i + 3 * s] = a[k + 3 * s] + b[k + 3 * s];
}

extern "C" __global__ void struct_both_aos(const Pair *p, Pair *q, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        Pair t = p[i];
        t.x += 10.f;
        t.y += 20.f;
        q[i] = t;
    }
}

extern "C" __global__ void struct_both_soa(const float *x, const float *y, float *u, float *v, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        u[i] = x[i] + 10.f;
        v[i] = y[i] + 20.f;
    }
}

extern "C" __global__ void struct_x_aos(const Pair *p, float *x, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = p[i].x + 10.f;
}

// b[n, m] from a[m, n]; blocks of 32 by 8 threads, tiles of 32 by 32.
extern "C" __global__ void transpose_naive(const float *a, float *b, int m, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < n && y + j < m) b[(size_t)x * m + y + j] = a[(size_t)(y + j) * n + x];
}

template <int PAD>
__device__ void transpose_shared_padded(const float *a, float *b, int m, int n) {
    __shared__ float tile[32 * (32 + PAD)];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < n && y + j < m) tile[(threadIdx.y + j) * (32 + PAD) + threadIdx.x] = a[(size_t)(y + j) * n + x];
    __syncthreads();
    int u = blockIdx.y * 32 + threadIdx.x, v = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (u < m && v + j < n) b[(size_t)(v + j) * m + u] = tile[threadIdx.x * (32 + PAD) + threadIdx.y + j];
}

extern "C" __global__ void transpose_shared(const float *a, float *b, int m, int n) {
    transpose_shared_padded<0>(a, b, m, n);
}

extern "C" __global__ void transpose_shared_pad(const float *a, float *b, int m, int n) {
    transpose_shared_padded<1>(a, b, m, n);
}

// The inner points of an n by n by n grid; blocks of 128 along x.
extern "C" __global__ void stencil_7(const float *u, float *v, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1) return;
    size_t p = ((size_t)z * n + y) * n + x, s = (size_t)n * n;
    v[p] = 0.5f * u[p] + 0.0833f * (u[p - 1] + u[p + 1] + u[p - n] + u[p + n] + u[p - s] + u[p + s]);
}

// n is a multiple of 256, the block's threads.
extern "C" __global__ void n_body(const float4 *body, float4 *acceleration, int n, float eps2) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 q = body[i];
    float ax = 0, ay = 0, az = 0;
    for (int t = 0; t < n; t += 256) {
        tile[threadIdx.x] = body[t + threadIdx.x];
        __syncthreads();
#pragma unroll 32
        for (int j = 0; j < 256; j++) {
            float4 o = tile[j];
            float dx = o.x - q.x, dy = o.y - q.y, dz = o.z - q.z;
            float r = rsqrtf(eps2 + dx * dx + dy * dy + dz * dz), w = o.w * r * r * r;
            ax += w * dx;
            ay += w * dy;
            az += w * dz;
        }
        __syncthreads();
    }
    acceleration[i] = make_float4(ax, ay, az, 0);
}

// Blocks of 32 by 32 threads.
extern "C" __global__ void matmul_tiled(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float as[32][32], bs[32][32];
    int tx = threadIdx.x, ty = threadIdx.y, r = blockIdx.y * 32 + ty, q = blockIdx.x * 32 + tx;
    float v = 0;
    for (int p = 0; p < (k + 31) / 32; p++) {
        as[ty][tx] = (r < m && p * 32 + tx < k) ? a[(size_t)r * k + p * 32 + tx] : 0.f;
        bs[ty][tx] = (p * 32 + ty < k && q < n) ? b[(size_t)(p * 32 + ty) * n + q] : 0.f;
        __syncthreads();
        for (int i = 0; i < 32; i++) v += as[ty][i] * bs[i][tx];
        __syncthreads();
    }
    if (r < m && q < n) c[(size_t)r * n + q] = v;
}

// 8 independent chains of fused multiply-adds a thread: rounds * 32 * 8 of them. cycles[block]: clock ticks that the
// block took.
extern "C" __global__ void multiply_add(float *out, long long *cycles, float a, float b, int rounds) {
    float v[8];
    for (int k = 0; k < 8; k++) v[k] = threadIdx.x + k;
    long long start = clock64();
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int i = 0; i < 32; i++) {
#pragma unroll
            for (int k = 0; k < 8; k++) v[k] = fmaf(v[k], a, b);
        }
    }
    long long ticks = clock64() - start;
    float total = 0;
    for (int k = 0; k < 8; k++) total += v[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = total;
    if (threadIdx.x == 0) cycles[blockIdx.x] = ticks;
}

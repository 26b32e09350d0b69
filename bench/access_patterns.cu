// One warp, one access, one launch each: what the memory pipes of a GPU count for a pattern of addresses.
// usage: access_patterns FILE    FILE is what access_patterns.py prints: name, operation and 32 byte offsets a line,
// -1 for a lane that is switched off. Run it under ncu; launch number n is line n.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#define CHECK(x) do { cudaError_t e = (x); if (e) { printf("CUDA error %s line %d\n", cudaGetErrorString(e), __LINE__); exit(1); } } while (0)

// A kernel parameter, so that reading it does not count.
struct Pattern { int at[32]; };
enum { MAGIC = 0x12345679 };

#define KERNEL(NAME) __global__ void NAME(Pattern p, char *global, unsigned *out)
#define START \
    __shared__ __align__(128) char shared[16384]; \
    int at = p.at[threadIdx.x]; \
    unsigned s = (unsigned)__cvta_generic_to_shared(shared) + at; \
    char *g = global + at; \
    unsigned a = 0, b = 0, c = 0, d = 0; (void)s; (void)g; \
    if (at >= 0) {
#define END } if ((a ^ b ^ c ^ d) == MAGIC) *out = a;

#define LOAD(NAME, TEXT, ADDRESS, SPACE) \
    KERNEL(NAME##1) { START asm volatile(TEXT ".b32 %0, [%1];" : "=r"(a) : SPACE(ADDRESS)); END } \
    KERNEL(NAME##2) { START asm volatile(TEXT ".v2.b32 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : SPACE(ADDRESS)); END } \
    KERNEL(NAME##4) { START asm volatile(TEXT ".v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : SPACE(ADDRESS)); END }
#define STORE(NAME, TEXT, ADDRESS, SPACE) \
    KERNEL(NAME##1) { START asm volatile(TEXT ".b32 [%0], %1;" :: SPACE(ADDRESS), "r"(a) : "memory"); END } \
    KERNEL(NAME##2) { START asm volatile(TEXT ".v2.b32 [%0], {%1,%2};" :: SPACE(ADDRESS), "r"(a), "r"(b) : "memory"); END } \
    KERNEL(NAME##4) { START asm volatile(TEXT ".v4.b32 [%0], {%1,%2,%3,%4};" :: SPACE(ADDRESS), "r"(a), "r"(b), "r"(c), "r"(d) : "memory"); END }
#define PTR "l"
#define OFF "r"
LOAD(lds, "ld.volatile.shared", s, OFF)
STORE(sts, "st.volatile.shared", s, OFF)
LOAD(ldg, "ld.global", g, PTR)
LOAD(ldgnc, "ld.global.nc", g, PTR)
STORE(stg, "st.global", g, PTR)
KERNEL(lds8) { START asm volatile("ld.volatile.shared.u8 %0, [%1];" : "=r"(a) : "r"(s)); END }
KERNEL(lds16) { START unsigned short h; asm volatile("ld.volatile.shared.u16 %0, [%1];" : "=h"(h) : "r"(s)); a = h; END }
KERNEL(ldg8) { START asm volatile("ld.global.u8 %0, [%1];" : "=r"(a) : "l"(g)); END }
KERNEL(ldg16) { START unsigned short h; asm volatile("ld.global.u16 %0, [%1];" : "=h"(h) : "l"(g)); a = h; END }
KERNEL(stg8) { START asm volatile("st.global.u8 [%0], %1;" :: "l"(g), "r"(a) : "memory"); END }
KERNEL(redg) { START asm volatile("red.global.add.u32 [%0], %1;" :: "l"(g), "r"(a + threadIdx.x) : "memory"); END }
KERNEL(redgf) { START asm volatile("red.global.add.f32 [%0], %1;" :: "l"(g), "f"(__int_as_float(threadIdx.x)) : "memory"); END }
KERNEL(atomg) { START asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(a) : "l"(g), "r"(threadIdx.x) : "memory"); END }
KERNEL(reds) { START asm volatile("red.shared.add.u32 [%0], %1;" :: "r"(s), "r"(threadIdx.x) : "memory"); END }
KERNEL(reds1) { START asm volatile("red.shared.add.u32 [%0], 1;" :: "r"(s) : "memory"); END }
KERNEL(atoms) { START asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(a) : "r"(s), "r"(threadIdx.x) : "memory"); END }
// The target is the lane's own place; the pattern is of the source.
#define COPY(NAME, KIND, BYTES) \
    KERNEL(NAME) { START unsigned to = s - at + threadIdx.x * BYTES; \
        asm volatile("cp.async." KIND ".shared.global [%0], [%1], %2;" :: "r"(to), "l"(g), "n"(BYTES) : "memory"); } \
        asm volatile("cp.async.wait_all;" ::: "memory"); }
COPY(copyca1, "ca", 4)
COPY(copyca2, "ca", 8)
COPY(copyca4, "ca", 16)
COPY(copycg4, "cg", 16)
// The source is the lane's own place; the pattern is of the target.
#define COPYTO(NAME, KIND, BYTES) \
    KERNEL(NAME) { START char *from = global + threadIdx.x * BYTES; \
        asm volatile("cp.async." KIND ".shared.global [%0], [%1], %2;" :: "r"(s), "l"(from), "n"(BYTES) : "memory"); } \
        asm volatile("cp.async.wait_all;" ::: "memory"); }
COPYTO(tocopyca1, "ca", 4)
COPYTO(tocopycg4, "cg", 16)

struct Row { const char *name; void (*kernel)(Pattern, char *, unsigned *); };
#define ROW(NAME) {#NAME, NAME},
static const Row rows[] = {ROW(lds1) ROW(lds2) ROW(lds4) ROW(sts1) ROW(sts2) ROW(sts4) ROW(ldg1) ROW(ldg2) ROW(ldg4)
    ROW(ldgnc1) ROW(ldgnc2) ROW(ldgnc4) ROW(stg1) ROW(stg2) ROW(stg4) ROW(lds8) ROW(lds16) ROW(ldg8) ROW(ldg16) ROW(stg8)
    ROW(redg) ROW(redgf) ROW(atomg) ROW(reds) ROW(reds1) ROW(atoms) ROW(copyca1) ROW(copyca2) ROW(copyca4) ROW(copycg4)
    ROW(tocopyca1) ROW(tocopycg4)};

int main(int argc, char **argv) {
    FILE *file = argc > 1 ? fopen(argv[1], "r") : nullptr;
    if (!file) { printf("usage: access_patterns FILE\n"); return 2; }
    char *global; unsigned *out;
    CHECK(cudaMalloc(&global, 1 << 20));
    CHECK(cudaMalloc(&out, 4));
    CHECK(cudaMemset(global, 0, 1 << 20));
    char operation[32], name[64];
    while (fscanf(file, "%31s %63s", operation, name) == 2) {
        Pattern pattern;
        for (int &at : pattern.at) if (fscanf(file, "%d", &at) != 1) { printf("bad line\n"); return 2; }
        const Row *found = nullptr;
        for (const Row &row : rows) if (!strcmp(row.name, operation)) found = &row;
        if (!found) { printf("no operation %s\n", operation); return 2; }
        found->kernel<<<1, 32>>>(pattern, global, out);
    }
    CHECK(cudaDeviceSynchronize());
    return 0;
}

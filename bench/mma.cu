// Matrix instructions on hard operands: what this GPU computes against what the emulator said, which bench/mma.py hands over.
// Operands are a function of their number; runtime/examples/mma_values.rs computes the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define BOTH __host__ __device__

BOTH uint64_t hash(uint64_t number) {
    uint64_t z = (number + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

BOTH uint32_t real(int kind, uint32_t exponent_bits, uint32_t fraction_bits, uint64_t hash) {
    uint32_t bias = (1u << (exponent_bits - 1)) - 1, top = (1u << exponent_bits) - 1;
    uint32_t mask = (1u << fraction_bits) - 1;
    uint32_t sign = hash & 1, dice = hash >> 32, fraction = (uint32_t)(hash >> 1) & mask;
    uint32_t wide = exponent_bits == 5 ? 12 : 20, exponent = 0;
    switch (kind) {
    case 0: exponent = dice & top; break;
    case 1: exponent = bias - 3 + dice % 7; break;
    case 2: exponent = bias - wide + dice % (2 * wide + 1); break;
    case 3: {
        exponent = bias - (dice >> 8) % 2 * 12;
        uint32_t near[4] = {0, 1, mask, fraction};
        fraction = near[dice % 4];
        break;
    }
    case 4: {
        uint32_t exponents[3] = {bias + (dice >> 8) % 4, 0, 1 + (dice >> 8) % 4};
        exponent = exponents[dice % 3];
        break;
    }
    case 5: exponent = (dice >> 8) % 16 == 0 ? bias : top - 1 - dice % 4; break;
    case 6:
        if (dice & 1) {
            exponent = fraction = 0;
        } else {
            exponent = (dice >> 8) % 2 ? 0 : bias - 1;
        }
        break;
    default: exponent = bias + dice % 3; fraction = 0;
    }
    return sign << (exponent_bits + fraction_bits) | exponent << fraction_bits | fraction;
}

// Types, in the order of the compiler's table.
enum { F16, BF16, TF32, S8S8, S8U8, U8S8, U8U8, TYPES };
static const char *NAMES[TYPES] = {"f16", "bf16", "tf32", "s8.s8", "s8.u8", "u8.s8", "u8.u8"};

BOTH uint32_t word(int type, uint64_t instruction, uint64_t operand, uint64_t lane) {
    int kind = instruction % 8;
    uint64_t number = ((((uint64_t)type << 20 | instruction) * 16 + operand) * 32 + lane) * 4;
    if (type >= S8S8) {
        if (kind == 1 && operand < 6) {
            uint64_t bits = hash(number);
            uint32_t word = 0;
            for (int byte = 0; byte < 4; byte++) word |= (bits >> byte & 1 ? 0x80u : 0x7fu) << (8 * byte);
            return word;
        }
        return (uint32_t)hash(number);
    }
    if (operand >= 6 || type == TF32) return real(kind, 8, 23, hash(number));
    if (type == F16) return real(kind, 5, 10, hash(number)) | real(kind, 5, 10, hash(number + 1)) << 16;
    return real(kind, 8, 7, hash(number)) | real(kind, 8, 7, hash(number + 1)) << 16;
}

#define MMA(NAME, C)                                                                                             \
    asm volatile("mma.sync.aligned." NAME " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"               \
                 : "+" C(c[0]), "+" C(c[1]), "+" C(c[2]), "+" C(c[3])                                            \
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(w[4]), "r"(w[5]))

__global__ void multiply(int type, uint32_t *out) {
    uint64_t instruction = blockIdx.x;
    uint32_t lane = threadIdx.x, w[10];
    for (int operand = 0; operand < 10; operand++) w[operand] = word(type, instruction, operand, lane);
    if (type < S8S8) {
        float c[4];
        for (int at = 0; at < 4; at++) c[at] = __uint_as_float(w[6 + at]);
        if (type == F16) MMA("m16n8k16.row.col.f32.f16.f16.f32", "f");
        if (type == BF16) MMA("m16n8k16.row.col.f32.bf16.bf16.f32", "f");
        if (type == TF32) MMA("m16n8k8.row.col.f32.tf32.tf32.f32", "f");
        for (int at = 0; at < 4; at++) out[(instruction * 4 + at) * 32 + lane] = __float_as_uint(c[at]);
    } else {
        uint32_t c[4];
        for (int at = 0; at < 4; at++) c[at] = w[6 + at];
        if (type == S8S8) MMA("m16n8k32.row.col.s32.s8.s8.s32", "r");
        if (type == S8U8) MMA("m16n8k32.row.col.s32.s8.u8.s32", "r");
        if (type == U8S8) MMA("m16n8k32.row.col.s32.u8.s8.s32", "r");
        if (type == U8U8) MMA("m16n8k32.row.col.s32.u8.u8.s32", "r");
        for (int at = 0; at < 4; at++) out[(instruction * 4 + at) * 32 + lane] = c[at];
    }
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: mma FILE\n");
        return 2;
    }
    FILE *file = fopen(arguments[1], "rb");
    if (!file) {
        perror(arguments[1]);
        return 2;
    }
    fseek(file, 0, SEEK_END);
    size_t words = ftell(file) / 4, of_type = words / TYPES, instructions = of_type / 128;
    rewind(file);
    std::vector<uint32_t> expected(words), found(of_type);
    if (words == 0 || fread(expected.data(), 4, words, file) != words) return 2;
    uint32_t *out;
    if (cudaMalloc(&out, of_type * 4) != cudaSuccess) return 2;
    int wrong_types = 0;
    for (int type = 0; type < TYPES; type++) {
        multiply<<<instructions, 32>>>(type, out);
        cudaError_t error = cudaMemcpy(found.data(), out, of_type * 4, cudaMemcpyDeviceToHost);
        if (error != cudaSuccess) {
            fprintf(stderr, "%s\n", cudaGetErrorString(error));
            return 2;
        }
        size_t wrong[8] = {}, all = 0;
        for (size_t at = 0; at < of_type; at++) {
            uint32_t wanted = expected[type * of_type + at];
            if (found[at] == wanted) continue;
            size_t instruction = at / 128;
            if (all++ < 4)
                printf("  %s instruction %zu (kind %zu) register %zu lane %zu: GPU %08x, emulator %08x\n", NAMES[type],
                       instruction, instruction % 8, at / 32 % 4, at % 32, found[at], wanted);
            wrong[instruction % 8]++;
        }
        printf("%-6s %zu sums, %zu differ", NAMES[type], of_type, all);
        for (int kind = 0; all && kind < 8; kind++) printf("%s%zu", kind ? ", " : "; by kind: ", wrong[kind]);
        printf("\n");
        wrong_types += all > 0;
    }
    return wrong_types > 0;
}

// What the grammar cannot say without a look ahead: where a line end ends a statement, how far a number reaches, whether
// `max(` is a reduction, and comments that nest. The compiler does the same in `compiler/src/syntax/`: `layout.rs`,
// `literal.rs`, `brackets.rs` and `lexer.rs`.
//
// The scanner has no state: all it knows is which tokens the parser could take here.

#include "tree_sitter/parser.h"

#include <string.h>

// The order is that of `externals` in `grammar.js`.
enum Token {
  LINE_END,
  INTEGER,
  FLOAT,
  REDUCTION,
  BLOCK_COMMENT_REST,
  // Wanted nowhere: where it is allowed, all is, since the parser looks for a place to go on after a mistake.
  ERROR_SENTINEL,
};

// The types that a number's suffix may name: integers first, for only those go with all integers.
static const char *const SUFFIXES[] = {
  "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64",
};
enum { INTEGER_SUFFIXES = 8 };

// Words that no statement starts with.
static const char *const GOING_ON[] = {"as", "else", "in", "where"};

#define LENGTH(words) (sizeof(words) / sizeof((words)[0]))

// Longer than any word that is asked for.
enum { WORD_SIZE = 16 };

static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }

static bool is_letter(int32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool is_hex_digit(int32_t c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

static void advance(TSLexer *lexer) { lexer->advance(lexer, false); }

// Reads letters and digits; what does not fit is read over, and leaves a text that is no word of the language.
static void read_word(TSLexer *lexer, char word[WORD_SIZE]) {
  size_t length = 0;
  while (is_letter(lexer->lookahead) || is_digit(lexer->lookahead)) {
    if (length < WORD_SIZE - 1) word[length++] = (char)lexer->lookahead;
    advance(lexer);
  }
  word[length] = '\0';
}

static bool is_among(const char *word, const char *const words[], size_t count) {
  for (size_t at = 0; at < count; at++) {
    if (strcmp(word, words[at]) == 0) return true;
  }
  return false;
}

// Whether a character controls the direction of the text around it: the compiler refuses comments with such.
static bool changes_direction(int32_t c) {
  return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

// Reads a comment behind its `/*` up to and with the `*/` of the same level.
static bool read_block_comment(TSLexer *lexer, bool *newline) {
  unsigned depth = 1;
  while (!lexer->eof(lexer)) {
    int32_t c = lexer->lookahead;
    if (changes_direction(c)) return false;
    if (c == '\n') *newline = true;
    advance(lexer);
    if (c == '/' && lexer->lookahead == '*') {
      advance(lexer);
      depth++;
    } else if (c == '*' && lexer->lookahead == '/') {
      advance(lexer);
      if (--depth == 0) return true;
    }
  }
  return false;
}

// What `pass_space` stops at.
typedef enum { TOKEN, SLASH, NOTHING } Stop;

// Passes over space and comments. A `/` that is an operator has been passed as well, since only the next character tells.
static Stop pass_space(TSLexer *lexer, bool *newline) {
  for (;;) {
    switch (lexer->lookahead) {
      case '\n':
        *newline = true;
        // fall through
      case ' ':
      case '\t':
      case '\r':
        advance(lexer);
        break;
      case '/':
        advance(lexer);
        if (lexer->lookahead == '/') {
          while (!lexer->eof(lexer) && lexer->lookahead != '\n') advance(lexer);
        } else if (lexer->lookahead == '*') {
          advance(lexer);
          if (!read_block_comment(lexer, newline)) return NOTHING;
        } else {
          return SLASH;
        }
        break;
      default:
        return lexer->eof(lexer) ? NOTHING : TOKEN;
    }
  }
}

// Whether a line that starts here can start a statement.
static bool starts_statement(TSLexer *lexer) {
  int32_t c = lexer->lookahead;
  if (is_letter(c)) {
    char word[WORD_SIZE];
    read_word(lexer, word);
    return !is_among(word, GOING_ON, LENGTH(GOING_ON));
  }
  if (c == '!') {
    advance(lexer);
    return lexer->lookahead != '=';
  }
  static const char NEVER_FIRST[] = "+-*/%&|^<>=,:;.{})]";
  return c > 0x7f || memchr(NEVER_FIRST, c, LENGTH(NEVER_FIRST)) == NULL;
}

// A number, with its suffix. False where it is no number of the language, such as `0x` and `1q`.
static bool scan_number(TSLexer *lexer) {
  bool is_float = false;
  bool has_digits = false;
  bool has_prefix = false;
  char suffix[WORD_SIZE] = "";
  int32_t first = lexer->lookahead;
  advance(lexer);
  int32_t second = lexer->lookahead;
  if (first == '0' && (second == 'x' || second == 'X' || second == 'o' || second == 'O')) {
    has_prefix = true;
    bool is_hex = second == 'x' || second == 'X';
    advance(lexer);
    while (lexer->lookahead == '_' || (is_hex ? is_hex_digit(lexer->lookahead) : is_digit(lexer->lookahead))) {
      if (lexer->lookahead == '8' || lexer->lookahead == '9') {
        if (!is_hex) return false;
      }
      has_digits |= lexer->lookahead != '_';
      advance(lexer);
    }
    if (!has_digits) return false;
    read_word(lexer, suffix);
  } else if (first == '0' && (second == 'b' || second == 'B')) {
    advance(lexer);
    if (second == 'b' && lexer->lookahead == 'f') {
      // `0bf16` is a zero of the type `bf16`.
      suffix[0] = 'b';
      char rest[WORD_SIZE] = "";
      read_word(lexer, rest);
      memcpy(suffix + 1, rest, WORD_SIZE - 2);
    } else {
      has_prefix = true;
      while (lexer->lookahead == '_' || is_digit(lexer->lookahead)) {
        if (lexer->lookahead > '1' && lexer->lookahead <= '9') return false;
        has_digits |= lexer->lookahead != '_';
        advance(lexer);
      }
      if (!has_digits) return false;
      read_word(lexer, suffix);
    }
  } else {
    while (is_digit(lexer->lookahead) || lexer->lookahead == '_') advance(lexer);
    lexer->mark_end(lexer);
    if (lexer->lookahead == '.') {
      advance(lexer);
      if (is_digit(lexer->lookahead)) {
        is_float = true;
        while (is_digit(lexer->lookahead) || lexer->lookahead == '_') advance(lexer);
      } else {
        // `0..n` is a range and `1.x` the field of a number; `1.` is a number.
        is_float = lexer->lookahead != '.' && !is_letter(lexer->lookahead);
        if (is_float) lexer->mark_end(lexer);
        lexer->result_symbol = is_float ? FLOAT : INTEGER;
        return true;
      }
    }
    if (lexer->lookahead == 'e' || lexer->lookahead == 'E') {
      advance(lexer);
      if (lexer->lookahead == '+' || lexer->lookahead == '-') advance(lexer);
      while (is_digit(lexer->lookahead) || lexer->lookahead == '_') {
        has_digits |= lexer->lookahead != '_';
        advance(lexer);
      }
      if (!has_digits) return false;
      is_float = true;
    }
    read_word(lexer, suffix);
  }
  if (suffix[0] != '\0') {
    bool names_integer = is_among(suffix, SUFFIXES, INTEGER_SUFFIXES);
    if (!names_integer && !is_among(suffix, SUFFIXES, LENGTH(SUFFIXES))) return false;
    // `0b1f32` is an integer that is written to become a float.
    if (names_integer && is_float) return false;
    is_float = !names_integer && !has_prefix;
  }
  lexer->mark_end(lexer);
  lexer->result_symbol = is_float ? FLOAT : INTEGER;
  return true;
}

// A word that makes a reduction: any name before parentheses with a `:` or `in` directly within, but for the fact
// `injective(at in 0..n)`.
static bool scan_reduction(TSLexer *lexer) {
  char word[WORD_SIZE];
  read_word(lexer, word);
  if (strcmp(word, "injective") == 0) return false;
  lexer->mark_end(lexer);
  lexer->result_symbol = REDUCTION;
  bool newline = false;
  if (pass_space(lexer, &newline) != TOKEN || lexer->lookahead != '(') return false;
  unsigned depth = 0;
  for (;;) {
    Stop stop = pass_space(lexer, &newline);
    if (stop == NOTHING) return false;
    if (stop == SLASH) continue;
    int32_t c = lexer->lookahead;
    if (is_letter(c) || is_digit(c)) {
      read_word(lexer, word);
      if (depth == 1 && strcmp(word, "in") == 0) return true;
      continue;
    }
    if (c == '(' || c == '[' || c == '{') depth++;
    if ((c == ')' || c == ']' || c == '}') && --depth == 0) return false;
    if (c == ':' && depth == 1) return true;
    advance(lexer);
  }
}

void *tree_sitter_krn_external_scanner_create(void) { return NULL; }

void tree_sitter_krn_external_scanner_destroy(void *payload) { (void)payload; }

unsigned tree_sitter_krn_external_scanner_serialize(void *payload, char *buffer) {
  (void)payload;
  (void)buffer;
  return 0;
}

void tree_sitter_krn_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  (void)payload;
  (void)buffer;
  (void)length;
}

bool tree_sitter_krn_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  (void)payload;
  bool newline = false;
  if (valid[BLOCK_COMMENT_REST] && !valid[ERROR_SENTINEL]) {
    if (!read_block_comment(lexer, &newline)) return false;
    lexer->mark_end(lexer);
    lexer->result_symbol = BLOCK_COMMENT_REST;
    return true;
  }
  while (lexer->lookahead == ' ' || lexer->lookahead == '\t' || lexer->lookahead == '\r') lexer->advance(lexer, true);
  if (valid[LINE_END] && (lexer->lookahead == '\n' || lexer->lookahead == '/')) {
    // The token is the line end itself, or empty where a comment stands before that.
    lexer->mark_end(lexer);
    if (lexer->lookahead == '\n') {
      advance(lexer);
      lexer->mark_end(lexer);
      newline = true;
    }
    lexer->result_symbol = LINE_END;
    return pass_space(lexer, &newline) == TOKEN && newline && starts_statement(lexer);
  }
  while (lexer->lookahead == '\n' || lexer->lookahead == ' ' || lexer->lookahead == '\t' || lexer->lookahead == '\r') {
    lexer->advance(lexer, true);
  }
  if ((valid[INTEGER] || valid[FLOAT]) && is_digit(lexer->lookahead)) return scan_number(lexer);
  if (valid[REDUCTION] && is_letter(lexer->lookahead)) return scan_reduction(lexer);
  return false;
}

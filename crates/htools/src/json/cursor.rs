//! A cursor over JSON text.
//!
//! Messages of large clusters have tens of megabytes, mostly irrelevant, and an administrator waits for the answer. A
//! general-purpose parser alone would take longer than the complete run should. This cursor skips strings eight bytes at
//! a time and returns slices of the text.

use std::borrow::Cow;

/// Maximum nesting depth, because reading is recursive.
const MAX_DEPTH: u32 = 128;

/// A syntax error and its byte position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Syntax {
    what: &'static str,
    at: usize,
}

impl Syntax {
    /// The error with its line and column, both from 1.
    pub(crate) fn describe(self, text: &str) -> String {
        let before = &text.as_bytes()[..self.at.min(text.len())];
        let line = before.split(|b| *b == b'\n').count();
        let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
        format!("{} at line {line} column {column}", self.what)
    }
}

/// A number. Integers that fit into 64 bits are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

/// A position in a text.
#[derive(Debug)]
pub(crate) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    depth: u32,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, Syntax> {
        Err(Syntax { what, at: self.at })
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space and returns the next byte without consuming it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<u8, Syntax> {
        loop {
            match self.byte() {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                Some(byte) => return Ok(byte),
                None => return self.fail("unexpected end"),
            }
        }
    }

    #[inline]
    fn take(&mut self, expected: u8, what: &'static str) -> Result<(), Syntax> {
        if self.peek()? == expected {
            self.at += 1;
            Ok(())
        } else {
            self.fail(what)
        }
    }

    /// Checks that only white space follows.
    pub(crate) fn end(&mut self) -> Result<(), Syntax> {
        match self.peek() {
            Ok(_) => self.fail("Invalid tokens at end of JSON string"),
            Err(_) => Ok(()),
        }
    }

    /// Reads an object. `entry` is called with each key and must read the value.
    #[inline]
    pub(crate) fn object(
        &mut self,
        mut entry: impl FnMut(&mut Self, Cow<'t, str>) -> Result<(), Syntax>,
    ) -> Result<(), Syntax> {
        self.open(b'{')?;
        if self.peek()? != b'}' {
            loop {
                let key = self.string()?;
                self.take(b':', "expected a colon")?;
                entry(self, key)?;
                if self.peek()? != b',' {
                    break;
                }
                self.at += 1;
            }
        }
        self.close(b'}')
    }

    /// Reads a list. `element` is called for each element and must read it.
    #[inline]
    pub(crate) fn list(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), Syntax>,
    ) -> Result<(), Syntax> {
        self.open(b'[')?;
        if self.peek()? != b']' {
            loop {
                element(self)?;
                if self.peek()? != b',' {
                    break;
                }
                self.at += 1;
            }
        }
        self.close(b']')
    }

    #[inline]
    fn open(&mut self, bracket: u8) -> Result<(), Syntax> {
        self.take(bracket, "expected an object or a list")?;
        self.depth += 1;
        if self.depth > MAX_DEPTH { self.fail("nested too deeply") } else { Ok(()) }
    }

    #[inline]
    fn close(&mut self, bracket: u8) -> Result<(), Syntax> {
        self.depth -= 1;
        self.take(bracket, "expected a comma or a closing bracket")
    }

    /// Skips a value of any type.
    pub(crate) fn skip(&mut self) -> Result<(), Syntax> {
        match self.peek()? {
            b'"' => self.skip_string(),
            b'{' => self.skip_object(),
            b'[' => self.list(Self::skip),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number().map(drop),
        }
    }

    fn skip_object(&mut self) -> Result<(), Syntax> {
        self.open(b'{')?;
        if self.peek()? != b'}' {
            loop {
                if self.peek()? != b'"' {
                    return self.fail("expected a string");
                }
                self.skip_string()?;
                self.take(b':', "expected a colon")?;
                self.skip()?;
                if self.peek()? != b',' {
                    break;
                }
                self.at += 1;
            }
        }
        self.close(b'}')
    }

    /// Consumes a literal: `true`, `false` or `null`.
    pub(crate) fn word(&mut self, word: &'static str) -> Result<(), Syntax> {
        let rest = &self.text.as_bytes()[self.at..];
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else {
            self.fail("invalid token")
        }
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Result<Number, Syntax> {
        self.peek()?;
        let start = self.at;
        let negative = self.byte() == Some(b'-');
        self.at += usize::from(negative);
        let digits = self.at;
        let mut value: i64 = 0;
        let mut fits = true;
        while let Some(digit @ b'0'..=b'9') = self.byte() {
            match value.checked_mul(10).and_then(|v| v.checked_add(i64::from(digit - b'0'))) {
                Some(longer) => value = longer,
                None => fits = false,
            }
            self.at += 1;
        }
        let length = self.at - digits;
        if length == 0 {
            return self.fail("invalid token");
        }
        if length > 1 && self.text.as_bytes()[digits] == b'0' {
            return self.fail("invalid number");
        }
        if fits && !matches!(self.byte(), Some(b'.' | b'e' | b'E')) {
            return Ok(Number::Int(if negative { -value } else { value }));
        }
        self.float(start)
    }

    /// Reads the rest of a number that starts at `start`. Its integer digits are already consumed.
    #[cold]
    fn float(&mut self, start: usize) -> Result<Number, Syntax> {
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        match self.text[start..self.at].parse() {
            Ok(value) => Ok(Number::Float(value)),
            Err(_) => self.fail("invalid number"),
        }
    }

    fn digits(&mut self) -> Result<(), Syntax> {
        let start = self.at;
        while self.byte().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { self.fail("invalid number") } else { Ok(()) }
    }

    /// Reads a string. It's borrowed from the text unless it has escapes.
    // Messages are mostly strings. Without inlining, calls take a quarter of the time.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Result<Cow<'t, str>, Syntax> {
        self.take(b'"', "expected a string")?;
        let start = self.at;
        self.at = plain_end(self.text.as_bytes(), start);
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text[start..self.at - 1]));
        }
        self.escaped(start).map(Cow::Owned)
    }

    #[inline]
    fn skip_string(&mut self) -> Result<(), Syntax> {
        self.at = plain_end(self.text.as_bytes(), self.at + 1);
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(());
        }
        self.escaped(self.at).map(drop)
    }

    /// Reads the rest of a string that starts at `start`. The cursor is at the first byte that isn't plain.
    #[cold]
    fn escaped(&mut self, start: usize) -> Result<String, Syntax> {
        let mut value = self.text[start..self.at].to_owned();
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(value);
                }
                Some(b'\\') => {
                    self.at += 1;
                    value.push(self.escape()?);
                }
                Some(_) => return self.fail("Illegal unescaped character in string"),
                None => return self.fail("unterminated String"),
            }
            let from = self.at;
            self.at = plain_end(self.text.as_bytes(), from);
            value.push_str(&self.text[from..self.at]);
        }
    }

    fn escape(&mut self) -> Result<char, Syntax> {
        let Some(letter) = self.byte() else { return self.fail("unterminated String") };
        let plain = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode();
            }
            _ => return self.fail("invalid escape char"),
        };
        self.at += 1;
        Ok(plain)
    }

    fn unicode(&mut self) -> Result<char, Syntax> {
        let first = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&first) && self.text.as_bytes()[self.at..].starts_with(b"\\u")
        {
            self.at += 2;
            let second = self.hex()?;
            if !(0xdc00..0xe000).contains(&second) {
                return self.fail("lone surrogate");
            }
            0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        } else {
            first
        };
        char::from_u32(code).map_or_else(|| self.fail("lone surrogate"), Ok)
    }

    fn hex(&mut self) -> Result<u32, Syntax> {
        let mut value = 0;
        for _ in 0..4 {
            let Some(digit) = self.byte().and_then(|b| char::from(b).to_digit(16)) else {
                return self.fail("invalid escape");
            };
            value = value * 16 + digit;
            self.at += 1;
        }
        Ok(value)
    }
}

/// Position of the next byte that isn't a plain character: a quote, a backslash or a control character. The
/// end of the text if there is none.
#[allow(clippy::inline_always)]
#[inline(always)]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // Sets the high bit of bytes that are zero. Only the lowest set bit is reliable.
    let zero = |v: u64| v.wrapping_sub(ONES) & !v & HIGH;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let hits = zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\'))) | control;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|b| !matches!(b, b'"' | b'\\' | 0..=0x1f)) {
        at += 1;
    }
    at
}

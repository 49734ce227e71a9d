//! Parses a schema in the schema definition language.
//!
//! Directives are skipped: they do not change what a query may select.

use haft_core::problem::{Problem, excerpt};

use super::schema::{FieldDef, InputDef, Schema, TypeDef, TypeKind, TypeRef, is_name};

/// The maximum nesting of lists, values and types.
const MAX_DEPTH: usize = 32;

/// Parses a schema.
pub(super) fn parse(text: &str) -> Result<Schema, Problem> {
    let mut parser = Parser { text, at: 0, peeked: None };
    let mut schema = Schema::default();
    let mut has_schema = false;
    while let Some(description) = parser.description()? {
        let Some(word) = parser.next()? else { break };
        let word = if word == Token::Word("extend") { parser.next()?.unwrap_or(Token::End) } else { word };
        match word {
            Token::Word("schema") => {
                has_schema = true;
                parser.roots(&mut schema)?;
            }
            Token::Word("directive") => parser.skip_directive_definition()?,
            Token::Word(kind @ ("type" | "interface" | "union" | "enum" | "input" | "scalar")) => {
                parser.type_def(kind, description, &mut schema)?;
            }
            other => return Err(parser.unexpected(&other, "a definition such as `type`")),
        }
    }
    if !has_schema {
        let known = |name: &str| schema.types.contains_key(name).then(|| name.to_owned());
        (schema.query, schema.mutation) = (known("Query"), known("Mutation"));
    }
    Ok(schema)
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token<'t> {
    /// A name, a number, or another run of characters without a meaning of its own.
    Word(&'t str),
    Mark(char),
    Text(String),
    End,
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    peeked: Option<Token<'t>>,
}

impl<'t> Parser<'t> {
    fn error(&self, message: &str) -> Problem {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        Problem::new("", "syntax", format!("not a valid GraphQL schema: {message} at line {line}"))
    }

    fn unexpected(&self, token: &Token<'_>, expected: &str) -> Problem {
        let shown = match token {
            Token::Word(word) => format!("`{}`", excerpt(word, 40)),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::Text(_) => "a string".to_owned(),
            Token::End => "the end".to_owned(),
        };
        self.error(&format!("expected {expected}, found {shown}"))
    }

    /// Returns the next token; `None` at the end.
    fn next(&mut self) -> Result<Option<Token<'t>>, Problem> {
        if let Some(token) = self.peeked.take() {
            return Ok(Some(token));
        }
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(first) = rest.chars().next() else { return Ok(None) };
            if first.is_whitespace() || matches!(first, ',' | '\u{feff}') {
                self.at += first.len_utf8();
            } else if first == '#' {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                break;
            }
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        if let Some(inner) = rest.strip_prefix("\"\"\"") {
            let end = inner.find("\"\"\"").ok_or_else(|| self.error("an unclosed string"))?;
            self.at += end + 6;
            return Ok(Some(Token::Text(inner.get(..end).unwrap_or_default().trim().to_owned())));
        }
        if let Some(inner) = rest.strip_prefix('"') {
            let mut escaped = false;
            for (at, c) in inner.char_indices() {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '"' => {
                        self.at += at + 2;
                        return Ok(Some(Token::Text(inner.get(..at).unwrap_or_default().to_owned())));
                    }
                    '\n' => break,
                    _ => {}
                }
            }
            return Err(self.error("an unclosed string"));
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
        let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        if length > 0 {
            self.at += length;
            return Ok(rest.get(..length).map(Token::Word));
        }
        let mark = rest.chars().next().unwrap_or_default();
        self.at += mark.len_utf8();
        Ok(Some(Token::Mark(mark)))
    }

    fn peek(&mut self) -> Result<Option<&Token<'t>>, Problem> {
        if self.peeked.is_none() {
            self.peeked = self.next()?;
        }
        Ok(self.peeked.as_ref())
    }

    /// Skips a mark; returns whether it was there.
    fn accept(&mut self, mark: char) -> Result<bool, Problem> {
        let found = self.peek()? == Some(&Token::Mark(mark));
        if found {
            self.peeked = None;
        }
        Ok(found)
    }

    fn expect(&mut self, mark: char) -> Result<(), Problem> {
        if self.accept(mark)? {
            return Ok(());
        }
        let token = self.next()?.unwrap_or(Token::End);
        Err(self.unexpected(&token, &format!("`{mark}`")))
    }

    fn name(&mut self) -> Result<String, Problem> {
        match self.next()?.unwrap_or(Token::End) {
            Token::Word(word) if is_name(word) => Ok(word.to_owned()),
            other => Err(self.unexpected(&other, "a name")),
        }
    }

    /// Returns the description before a definition, or an empty text; `None` at the end.
    fn description(&mut self) -> Result<Option<String>, Problem> {
        if matches!(self.peek()?, Some(Token::Text(_))) {
            let Some(Token::Text(text)) = self.peeked.take() else { return Ok(None) };
            return Ok(Some(text));
        }
        Ok(self.peek()?.map(|_| String::new()))
    }

    fn roots(&mut self, schema: &mut Schema) -> Result<(), Problem> {
        self.directives()?;
        if !self.accept('{')? {
            return Ok(());
        }
        while !self.accept('}')? {
            let operation = self.name()?;
            self.expect(':')?;
            let name = self.name()?;
            match operation.as_str() {
                "query" => schema.query = Some(name),
                "mutation" => schema.mutation = Some(name),
                _ => {}
            }
        }
        Ok(())
    }

    fn type_def(&mut self, kind: &str, description: String, schema: &mut Schema) -> Result<(), Problem> {
        let name = self.name()?;
        if self.peek()? == Some(&Token::Word("implements")) {
            self.peeked = None;
            while self.accept('&')? || matches!(self.peek()?, Some(Token::Word(word)) if is_name(word)) {
                if matches!(self.peek()?, Some(Token::Word(_))) {
                    self.peeked = None;
                }
            }
        }
        self.directives()?;
        let mut def = TypeDef { description, ..TypeDef::default() };
        match kind {
            "type" | "interface" => {
                def.kind = if kind == "type" { TypeKind::Object } else { TypeKind::Interface };
                if self.accept('{')? {
                    while !self.accept('}')? {
                        def.fields.push(self.field()?);
                    }
                }
            }
            "input" => {
                def.kind = TypeKind::Input;
                if self.accept('{')? {
                    def.inputs = self.inputs('}')?;
                }
            }
            "enum" => {
                def.kind = TypeKind::Enum;
                if self.accept('{')? {
                    while !self.accept('}')? {
                        self.description()?;
                        def.names.push(self.name()?);
                        self.directives()?;
                    }
                }
            }
            "union" => {
                def.kind = TypeKind::Union;
                if self.accept('=')? {
                    self.accept('|')?;
                    def.names.push(self.name()?);
                    while self.accept('|')? {
                        def.names.push(self.name()?);
                    }
                }
            }
            _ => {}
        }
        // An extension adds to its type.
        let known = schema.types.entry(name).or_default();
        if known.kind == TypeKind::Scalar {
            known.kind = def.kind;
        }
        if known.description.is_empty() {
            known.description = def.description;
        }
        known.fields.append(&mut def.fields);
        known.inputs.append(&mut def.inputs);
        known.names.append(&mut def.names);
        Ok(())
    }

    fn field(&mut self) -> Result<FieldDef, Problem> {
        let description = self.description()?.unwrap_or_default();
        let name = self.name()?;
        let arguments = if self.accept('(')? { self.inputs(')')? } else { Vec::new() };
        self.expect(':')?;
        let ty = self.type_ref(0)?;
        let is_deprecated = self.directives()?;
        Ok(FieldDef { name, description, arguments, ty, is_deprecated })
    }

    fn inputs(&mut self, end: char) -> Result<Vec<InputDef>, Problem> {
        let mut inputs = Vec::new();
        while !self.accept(end)? {
            let description = self.description()?.unwrap_or_default();
            let name = self.name()?;
            self.expect(':')?;
            let ty = self.type_ref(0)?;
            let default = if self.accept('=')? { Some(self.value(0)?) } else { None };
            self.directives()?;
            inputs.push(InputDef { name, description, ty, default });
        }
        Ok(inputs)
    }

    fn type_ref(&mut self, depth: usize) -> Result<TypeRef, Problem> {
        if depth > MAX_DEPTH {
            return Err(self.error(&format!("types are nested deeper than {MAX_DEPTH}")));
        }
        let inner = if self.accept('[')? {
            let item = self.type_ref(depth + 1)?;
            self.expect(']')?;
            TypeRef::List(Box::new(item))
        } else {
            TypeRef::Named(self.name()?)
        };
        Ok(if self.accept('!')? { TypeRef::NonNull(Box::new(inner)) } else { inner })
    }

    /// Reads a value; returns its text, to show it.
    fn value(&mut self, depth: usize) -> Result<String, Problem> {
        if depth > MAX_DEPTH {
            return Err(self.error(&format!("values are nested deeper than {MAX_DEPTH}")));
        }
        match self.next()?.unwrap_or(Token::End) {
            Token::Word(word) => Ok(word.to_owned()),
            Token::Text(text) => Ok(format!("\"{text}\"")),
            Token::Mark('$') => self.name(),
            Token::Mark('[') => {
                let mut items = Vec::new();
                while !self.accept(']')? {
                    items.push(self.value(depth + 1)?);
                }
                Ok(format!("[{}]", items.join(", ")))
            }
            Token::Mark('{') => {
                let mut items = Vec::new();
                while !self.accept('}')? {
                    let name = self.name()?;
                    self.expect(':')?;
                    items.push(format!("{name}: {}", self.value(depth + 1)?));
                }
                Ok(format!("{{{}}}", items.join(", ")))
            }
            other => Err(self.unexpected(&other, "a value")),
        }
    }

    /// Skips directives; returns whether one is `@deprecated`.
    fn directives(&mut self) -> Result<bool, Problem> {
        let mut is_deprecated = false;
        while self.accept('@')? {
            is_deprecated |= self.name()? == "deprecated";
            if self.accept('(')? {
                while !self.accept(')')? {
                    self.name()?;
                    self.expect(':')?;
                    self.value(0)?;
                }
            }
        }
        Ok(is_deprecated)
    }

    fn skip_directive_definition(&mut self) -> Result<(), Problem> {
        self.expect('@')?;
        self.name()?;
        if self.accept('(')? {
            self.inputs(')')?;
        }
        if self.peek()? == Some(&Token::Word("repeatable")) {
            self.peeked = None;
        }
        // `on A | B`
        self.name()?;
        self.accept('|')?;
        self.name()?;
        while self.accept('|')? {
            self.name()?;
        }
        Ok(())
    }
}

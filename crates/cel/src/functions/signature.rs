//! Signatures, written as text: `string.contains(string) bool`.

use crate::types::{Opaque, Type};

/// One overload.
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) is_member: bool,
    /// The target first, if there is one.
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
    /// How many type parameters there are.
    pub(crate) variables: usize,
}

impl Signature {
    /// Reads a signature of the tables.
    pub(super) fn parse(text: &str) -> Self {
        let mut reader = Reader {
            rest: text,
            variables: 0,
        };
        let mut params = Vec::new();
        let is_member = !text.starts_with('(');
        if is_member {
            params.push(reader.ty());
            reader.skip('.');
        }
        reader.skip('(');
        while !reader.rest.starts_with(')') {
            params.push(reader.ty());
            reader.skip(',');
        }
        reader.skip(')');
        let result = reader.ty();
        assert!(
            reader.rest.is_empty(),
            "invariant: signature {text} is well formed"
        );
        Self {
            is_member,
            params,
            result,
            variables: reader.variables,
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    variables: usize,
}

impl Reader<'_> {
    fn skip(&mut self, symbol: char) {
        self.rest = self.rest.trim_start();
        self.rest = self
            .rest
            .strip_prefix(symbol)
            .unwrap_or(self.rest)
            .trim_start();
    }

    fn ty(&mut self) -> Type {
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let mut inner = Vec::new();
        if self.rest.starts_with('<') {
            self.skip('<');
            while !self.rest.starts_with('>') {
                inner.push(self.ty());
                self.skip(',');
            }
            self.skip('>');
        }
        let mut inner = inner.into_iter();
        let mut next = || inner.next().unwrap_or(Type::Dyn);
        match name {
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "dyn" => Type::Dyn,
            "timestamp" => Type::Timestamp,
            "duration" => Type::Duration,
            "list" => Type::list(next()),
            "map" => Type::map(next(), next()),
            "optional" => Type::optional(next()),
            "type" => Type::Type(std::sync::Arc::new(next())),
            "quantity" => Type::Opaque(Opaque::Quantity),
            "semver" => Type::Opaque(Opaque::Semver),
            "url" => Type::Opaque(Opaque::Url),
            "ip" => Type::Opaque(Opaque::Ip),
            "cidr" => Type::Opaque(Opaque::Cidr),
            "format" => Type::Opaque(Opaque::Format),
            "authorizer" => Type::Opaque(Opaque::Authorizer),
            "path_check" => Type::Opaque(Opaque::PathCheck),
            "group_check" => Type::Opaque(Opaque::GroupCheck),
            "resource_check" => Type::Opaque(Opaque::ResourceCheck),
            "decision" => Type::Opaque(Opaque::Decision),
            "A" => self.variable(0),
            "B" => self.variable(1),
            other => unreachable!("invariant: the tables name no type {other}"),
        }
    }

    fn variable(&mut self, number: usize) -> Type {
        self.variables = self.variables.max(number + 1);
        Type::Variable(number)
    }
}

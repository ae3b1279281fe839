//! Reads the table of facts.
//!
//! One line each, words separated by single spaces:
//!
//! | line | meaning |
//! |---|---|
//! | `; text` | a remark |
//! | `@ apps/v1 apps` | what follows is of this package and API group, `-` for the core group |
//! | `! Protocol SCTP,TCP,UDP` | an enum |
//! | `= Pod kind atomic` | a type; `kind`, `every` or `unversioned` where it is a kind |
//! | `> 2 core/v1.VolumeSource` | a type inlined into the last one, and its protobuf number |
//! | `name 1 *string o` | a field of the last type: name, protobuf number, shape, properties |
//!
//! A shape is a word, or the name of a type or enum, behind any of `*` pointer, `[]` list, `<>`
//! list with a message of its own, `{}` map. The properties are `o` empty is omitted, `z` zero is
//! omitted, `r` required, `a` atomic, `g` granular, `l=` list type, `k=` list keys, `p=` patch strategy, `m=`
//! merge key, and last `d=` default.
//!
//! The table is part of this crate, so a line that cannot be read is a bug and ends the process
//! with its text; a test reads all of them.

use std::collections::HashMap;

use windlass_core::Str;

use super::{Atlas, EnumRef, Field, Inlined, ListType, Registered, Shape, Strategy, Type, TypeRef};

/// The meaning of a name in a shape.
enum Named {
    Type(TypeRef),
    Enum(EnumRef),
}

type Names = HashMap<(&'static str, &'static str), Named>;

pub(super) fn parse(text: &'static str) -> Atlas {
    let (names, enums) = read_names(text);
    let mut types: Vec<Type> = Vec::with_capacity(names.len());
    let mut package = Package::default();
    for line in text.lines() {
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        match mark {
            ";" | "!" => {}
            "@" => package = Package::read(rest),
            "=" => types.push(package.read_type(rest)),
            ">" => last(&mut types, line)
                .inlined
                .push(read_inlined(&names, rest)),
            name => {
                let field = read_field(&names, name, rest);
                last(&mut types, line).fields.push(field);
            }
        }
    }
    for found in &mut types {
        found.fields.sort_unstable_by_key(|field| field.name);
        let own = found.fields.iter().map(|field| field.number);
        let inlined = found.inlined.iter().map(|inlined| inlined.number);
        found.numbers = own.chain(inlined).collect();
        let all = 0..found.numbers.len();
        let mut order: Vec<usize> = all.filter(|at| found.numbers[*at] > 0).collect();
        order.sort_unstable_by_key(|at| found.numbers[*at]);
        found.wire_order = order.into_iter().map(index).collect();
    }
    let names = names.into_iter().filter_map(|(name, named)| match named {
        Named::Type(found) => Some((name, found)),
        Named::Enum(_) => None,
    });
    Atlas {
        kinds: kinds(&types),
        types,
        enums,
        names: names.collect(),
    }
}

fn last<'a>(types: &'a mut [Type], line: &str) -> &'a mut Type {
    types
        .last_mut()
        .unwrap_or_else(|| panic!("a field before any type: {line}"))
}

/// The names of all types and enums, which may be used before the line that declares them.
fn read_names(text: &'static str) -> (Names, Vec<Vec<&'static str>>) {
    let (mut names, mut enums, mut types) = (Names::with_capacity(700), Vec::new(), 0);
    let mut package = "";
    for line in text.lines() {
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        match mark {
            "@" => package = word,
            "!" => {
                names.insert((package, word), Named::Enum(EnumRef(index(enums.len()))));
                enums.push(rest.split(',').collect());
            }
            "=" => {
                names.insert((package, word), Named::Type(TypeRef(index(types))));
                types += 1;
            }
            _ => {}
        }
    }
    (names, enums)
}

fn index(position: usize) -> u16 {
    u16::try_from(position).expect("invariant: the table has fewer than 65536 types")
}

fn kinds(types: &[Type]) -> HashMap<&'static str, Vec<TypeRef>> {
    let mut kinds: HashMap<_, Vec<_>> = HashMap::new();
    for (at, found) in types.iter().enumerate() {
        if found.registered != Registered::Nowhere {
            let same = kinds.entry(found.name).or_default();
            same.push(TypeRef(index(at)));
        }
    }
    kinds
}

#[derive(Default)]
struct Package {
    name: &'static str,
    group: &'static str,
    version: &'static str,
}

impl Package {
    fn read(rest: &'static str) -> Self {
        let (name, group) = rest.split_once(' ').unwrap_or((rest, "-"));
        Self {
            name,
            group: if group == "-" { "" } else { group },
            version: name.rsplit_once('/').map_or("", |(_, version)| version),
        }
    }

    fn read_type(&self, rest: &'static str) -> Type {
        let mut words = rest.split(' ');
        let mut fresh = Type {
            name: words.next().unwrap_or_default(),
            package: self.name,
            group: self.group,
            version: self.version,
            registered: Registered::Nowhere,
            is_atomic: false,
            fields: Vec::new(),
            inlined: Vec::new(),
            numbers: Vec::new(),
            wire_order: Vec::new(),
        };
        for word in words {
            match word {
                "kind" => fresh.registered = Registered::Own,
                "every" => fresh.registered = Registered::Everywhere,
                "unversioned" => fresh.registered = Registered::Unversioned,
                "atomic" => fresh.is_atomic = true,
                _ => panic!("unknown word {word} of type {rest}"),
            }
        }
        fresh
    }
}

fn read_inlined(names: &Names, rest: &'static str) -> Inlined {
    let (number, shape) = rest.split_once(' ').unwrap_or((rest, ""));
    match read_shape(names, shape) {
        Shape::Message(of) => Inlined {
            number: read_number(number),
            of,
        },
        _ => panic!("only types can be inlined, not {shape}"),
    }
}

fn read_number(text: &str) -> u32 {
    text.parse()
        .unwrap_or_else(|_| panic!("bad protobuf number {text}"))
}

fn read_field(names: &Names, name: &'static str, rest: &'static str) -> Field {
    let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let (shape, properties) = rest.split_once(' ').unwrap_or((rest, ""));
    let (is_pointer, shape) = shape
        .strip_prefix('*')
        .map_or((false, shape), |shape| (true, shape));
    let mut field = Field {
        key: Str::new(name),
        name,
        number: read_number(number),
        shape: read_shape(names, shape),
        is_pointer,
        omits_empty: false,
        omits_zero: false,
        is_required: false,
        atomic: None,
        list_type: None,
        list_keys: Vec::new(),
        strategy: Strategy::default(),
        merge_key: None,
        default: None,
    };
    read_properties(&mut field, properties);
    field
}

fn read_properties(field: &mut Field, mut rest: &'static str) {
    while !rest.is_empty() {
        if let Some(default) = rest.strip_prefix("d=") {
            field.default = Some(default);
            return;
        }
        let (word, next) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = next;
        match word.split_once('=') {
            None if word == "o" => field.omits_empty = true,
            None if word == "z" => field.omits_zero = true,
            None if word == "r" => field.is_required = true,
            None if word == "a" => field.atomic = Some(true),
            None if word == "g" => field.atomic = Some(false),
            Some(("l", kind)) => field.list_type = Some(read_list_type(kind)),
            Some(("k", keys)) => field.list_keys = keys.split(',').collect(),
            Some(("p", strategy)) => field.strategy = read_strategy(strategy),
            Some(("m", key)) => field.merge_key = Some(key),
            _ => panic!("unknown property {word} of field {}", field.name),
        }
    }
}

fn read_list_type(text: &str) -> ListType {
    match text {
        "atomic" => ListType::Atomic,
        "set" => ListType::Set,
        "map" => ListType::Map,
        _ => panic!("unknown list type {text}"),
    }
}

fn read_strategy(text: &str) -> Strategy {
    let mut strategy = Strategy::default();
    for word in text.split(',') {
        match word {
            "merge" => strategy.merge = true,
            "replace" => strategy.replace = true,
            "retainKeys" => strategy.retain_keys = true,
            _ => panic!("unknown patch strategy {text}"),
        }
    }
    strategy
}

fn read_shape(names: &Names, text: &'static str) -> Shape {
    let inner = |rest| Box::new(read_shape(names, rest));
    if let Some(rest) = text.strip_prefix("[]") {
        return Shape::List(inner(rest));
    }
    if let Some(rest) = text.strip_prefix("<>") {
        return Shape::WrappedList(inner(rest));
    }
    if let Some(rest) = text.strip_prefix("{}") {
        return Shape::Map(inner(rest));
    }
    match text {
        "bool" => Shape::Bool,
        "int32" => Shape::Int32,
        "int64" => Shape::Int64,
        "double" => Shape::Double,
        "string" => Shape::String,
        "bytes" => Shape::Bytes,
        "time" => Shape::Time,
        "microtime" => Shape::MicroTime,
        "quantity" => Shape::Quantity,
        "intorstring" => Shape::IntOrString,
        "fields" => Shape::Fields,
        "raw" => Shape::Raw,
        "json" => Shape::Json,
        "schemaorbool" => Shape::SchemaOrBool,
        "schemaorarray" => Shape::SchemaOrArray,
        "schemaorstrings" => Shape::SchemaOrStrings,
        "any" => Shape::Any,
        _ => match text.split_once('.').and_then(|name| names.get(&name)) {
            Some(Named::Type(found)) => Shape::Message(*found),
            Some(Named::Enum(found)) => Shape::Enum(*found),
            None => panic!("unknown shape {text}"),
        },
    }
}

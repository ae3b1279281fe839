//! Replays the inputs that must be refused, each with what its error says.

use std::fmt::Display;
use std::str::FromStr;

use windlass_core::{FieldSelector, LabelSelector, MicroTime, Quantity, Selector, Time, names};

/// Reads an input of some kind and says what is wrong with it.
type Check = fn(&str) -> Option<String>;

/// One line of a file: kind of input, input, expected message.
struct Case {
    kind: String,
    input: String,
    message: String,
}

fn cases(file: &str) -> Vec<Case> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    let cases: Vec<_> = lines.map(case).collect();
    assert!(cases.len() > 20, "the file has lost its cases");
    cases
}

fn case(line: &str) -> Case {
    let (kind, rest) = line.split_once(' ').expect("a line starts with the kind");
    let mut inputs = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let input = inputs
        .next()
        .expect("an input")
        .expect("the input is a JSON string");
    let message = rest[inputs.byte_offset()..]
        .strip_prefix(" => ")
        .expect("an arrow");
    Case {
        kind: kind.to_owned(),
        input,
        message: message.to_owned(),
    }
}

fn replay(file: &str, kinds: &[(&str, Check)]) {
    for Case {
        kind,
        input,
        message,
    } in cases(file)
    {
        let (_, check) = kinds
            .iter()
            .find(|(name, _)| *name == kind)
            .expect("a known kind");
        assert_eq!(check(&input).as_ref(), Some(&message), "{kind} {input:?}");
    }
}

fn refusal<T: FromStr<Err: Display>>(input: &str) -> Option<String> {
    input.parse::<T>().err().map(|error| error.to_string())
}

fn structured_refusal(input: &str) -> Option<String> {
    let selector: LabelSelector = serde_json::from_str(input).expect("the object can be read");
    Selector::try_from(&selector)
        .err()
        .map(|error| error.to_string())
}

fn joined(problems: &[String]) -> Option<String> {
    (!problems.is_empty()).then(|| problems.join(" | "))
}

#[test]
fn bad_selectors_are_refused() {
    let kinds: [(&str, Check); 3] = [
        ("label", refusal::<Selector>),
        ("structured", structured_refusal),
        ("field", refusal::<FieldSelector>),
    ];
    replay(include_str!("bad_inputs/selectors.txt"), &kinds);
}

#[test]
fn bad_quantities_are_refused() {
    replay(
        include_str!("bad_inputs/quantities.txt"),
        &[("quantity", refusal::<Quantity>)],
    );
}

#[test]
fn bad_times_are_refused() {
    let kinds: [(&str, Check); 2] = [("time", refusal::<Time>), ("micro", refusal::<MicroTime>)];
    replay(include_str!("bad_inputs/times.txt"), &kinds);
}

#[test]
fn bad_names_are_refused() {
    let kinds: [(&str, Check); 8] = [
        ("dns1123_label", |name| joined(&names::dns1123_label(name))),
        ("dns1123_subdomain", |name| {
            joined(&names::dns1123_subdomain(name))
        }),
        ("dns1035_label", |name| joined(&names::dns1035_label(name))),
        ("qualified_name", |name| {
            joined(&names::qualified_name(name))
        }),
        ("label_value", |name| joined(&names::label_value(name))),
        ("path_segment", |name| joined(&names::path_segment(name))),
        ("path_segment_prefix", |name| {
            joined(&names::path_segment_prefix(name))
        }),
        ("generate_dns1123_subdomain", |base| {
            joined(&names::dns1123_subdomain(&names::mask_trailing_dash(base)))
        }),
    ];
    replay(include_str!("bad_inputs/names.txt"), &kinds);
}

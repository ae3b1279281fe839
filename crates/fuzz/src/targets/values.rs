//! Small values in texts: selectors, quantities, times.

use std::collections::BTreeMap;
use std::str::FromStr;

use windlass_core::{
    Doc, FieldSelector, LabelSelector, MicroTime, Operator, Quantity, QuantityError, Requirement,
    Selector, Time,
};

use crate::{Outcome, parts, work};

fn texts<const N: usize>(data: &[u8]) -> Option<[&str; N]> {
    let mut texts = [""; N];
    for (text, part) in texts.iter_mut().zip(parts::<N>(data)) {
        *text = std::str::from_utf8(part).ok()?;
    }
    Some(texts)
}

/// Pairs such as `a=1,b=2`.
fn pairs(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// A label selector and labels: what is printed parses to the same, the verdict on the labels is
/// that of a plain reading, and the structured form agrees.
pub fn label_selector(data: &[u8]) -> Outcome {
    let Some([text, labels]) = texts::<2>(data) else {
        return Outcome::Refused;
    };
    work::bounded(work::PURE, data.len(), || {
        structured(text);
        let Ok(selector) = Selector::from_str(text) else {
            return Outcome::Refused;
        };
        let printed = selector.to_string();
        let again = Selector::from_str(&printed);
        let again = again.unwrap_or_else(|error| panic!("printed {printed:?}: {error}"));
        assert_eq!(again.to_string(), printed, "printed twice");
        let labels = pairs(labels);
        let expected = selector
            .requirements()
            .iter()
            .all(|one| meets(one, &labels));
        assert_eq!(
            selector.matches(&labels),
            expected,
            "{printed:?} on {labels:?}"
        );
        assert_eq!(again.matches(&labels), expected, "printed");
        if let Some(key) = labels.keys().next()
            && let Some(exact) = selector.exact_value(key)
        {
            assert!(!expected || labels.get(key).is_some_and(|value| value == exact));
        }
        Outcome::Accepted
    })
}

fn meets(one: &Requirement, labels: &BTreeMap<String, String>) -> bool {
    let found = labels.get(one.key());
    let number = |text: &String| text.parse::<i64>().ok();
    let wanted = one.values().first().and_then(number);
    let is_listed = found.is_some_and(|value| one.values().contains(value));
    match one.operator() {
        Operator::Exists => found.is_some(),
        Operator::DoesNotExist => found.is_none(),
        Operator::Equals | Operator::DoubleEquals | Operator::In => is_listed,
        Operator::NotEquals | Operator::NotIn => !is_listed,
        Operator::GreaterThan => {
            matches!((found.and_then(number), wanted), (Some(is), Some(than)) if is > than)
        }
        Operator::LessThan => {
            matches!((found.and_then(number), wanted), (Some(is), Some(than)) if is < than)
        }
    }
}

/// The text as the JSON of a structured selector.
fn structured(text: &str) {
    let Ok(doc) = Doc::parse(text.as_bytes()) else {
        return;
    };
    let Ok(selector) = doc.decode::<LabelSelector>() else {
        return;
    };
    let again = Doc::encode(&selector).expect("a selector is JSON");
    assert_eq!(
        again.decode::<LabelSelector>().as_ref().ok(),
        Some(&selector),
        "JSON"
    );
    if let Ok(plain) = Selector::try_from(&selector) {
        let printed = plain.to_string();
        let parsed = Selector::from_str(&printed);
        assert!(parsed.is_ok(), "the text form {printed:?} of {selector:?}");
    }
}

/// A field selector and fields: what is printed parses to the same, and the verdict on the fields
/// is that of a plain reading.
pub fn field_selector(data: &[u8]) -> Outcome {
    let Some([text, fields]) = texts::<2>(data) else {
        return Outcome::Refused;
    };
    work::bounded(work::PURE, data.len(), || {
        let Ok(selector) = FieldSelector::from_str(text) else {
            return Outcome::Refused;
        };
        let printed = selector.to_string();
        let again = FieldSelector::from_str(&printed);
        let again = again.unwrap_or_else(|error| panic!("printed {printed:?}: {error}"));
        let mut same = [
            selector.requirements().to_vec(),
            again.requirements().to_vec(),
        ];
        same.iter_mut()
            .for_each(|all| all.sort_by(|one, two| format!("{one:?}").cmp(&format!("{two:?}"))));
        assert_eq!(same[0], same[1], "printed {printed:?}");
        let fields = pairs(fields);
        let meets =
            |field: &str, value: &str| fields.get(field).map_or("", String::as_str) == value;
        let all = selector.requirements();
        let expected = all
            .iter()
            .all(|one| meets(&one.field, &one.value) != one.is_negated);
        assert_eq!(
            selector.matches(&fields),
            expected,
            "{printed:?} on {fields:?}"
        );
        Outcome::Accepted
    })
}

/// Two quantities: accepted if and only if the grammar has them, printed and parsed again the
/// same, ordered as their decimal amounts are, and added as amounts are.
pub fn quantity(data: &[u8]) -> Outcome {
    let Some([one, two]) = texts::<2>(data) else {
        return Outcome::Refused;
    };
    work::bounded(work::PURE, data.len(), || {
        let (left, right) = (checked_quantity(one), checked_quantity(two));
        let (Some(left), Some(right)) = (left, right) else {
            return Outcome::of(one.parse::<Quantity>().is_ok());
        };
        let (mut sum, mut other) = (left.clone(), right.clone());
        sum += &right;
        other += &left;
        assert_eq!(sum, other, "the sum commutes");
        sum -= &right;
        assert_eq!(sum, left, "what was added is taken away");
        assert_eq!(-(-left.clone()), left, "negated twice");
        if let (Some(a), Some(b)) = (micros(one), micros(two)) {
            assert_eq!(left.cmp(&right), a.cmp(&b), "{one} and {two}");
        }
        Outcome::Accepted
    })
}

fn checked_quantity(text: &str) -> Option<Quantity> {
    let parsed = text.parse::<Quantity>();
    let is_one = is_quantity(text);
    assert!(is_one || parsed.is_err(), "{text:?} is no quantity");
    // Upstream has no limits here: the length and the exponent are ours.
    let is_limited = matches!(
        parsed,
        Err(QuantityError::TooLong { .. } | QuantityError::TooLarge { .. })
    );
    assert!(
        !is_one || is_limited || parsed.is_ok(),
        "{text:?} is a quantity: {parsed:?}"
    );
    let quantity = parsed.ok()?;
    let printed = quantity.to_string();
    let again = printed.parse::<Quantity>();
    assert_eq!(again.as_ref(), Ok(&quantity), "printed {printed:?}");
    let again = again.map(|again| again.to_string());
    assert_eq!(again.as_ref(), Ok(&printed), "printed twice");
    assert_eq!(quantity.is_negative(), quantity < Quantity::ZERO);
    Some(quantity)
}

/// The grammar of quantities.
fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let digits = &unsigned[..unsigned.len() - number.len()];
    let points = digits.matches('.').count();
    let has_digits = digits.bytes().any(|byte| byte.is_ascii_digit());
    // Go reads the exponent as a number of 64 bits.
    let is_exponent = |text: &str| text.parse::<i64>().is_ok();
    let suffixes = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    let is_suffix =
        suffixes.contains(&number) || number.strip_prefix(['e', 'E']).is_some_and(is_exponent);
    points <= 1 && has_digits && is_suffix
}

/// A short decimal quantity in millionths.
fn micros(text: &str) -> Option<i128> {
    let number = text.trim_end_matches(['m', 'k', 'M']);
    let scale: i128 = match &text[number.len()..] {
        "m" => 1_000,
        "" => 1_000_000,
        "k" => 1_000_000_000,
        "M" => 1_000_000_000_000,
        _ => return None,
    };
    let is_short = number.len() <= 9 && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: i128 = is_short.then(|| number.parse().ok()).flatten()?;
    Some(number * scale)
}

/// A time: printed and parsed again the same, in seconds and in microseconds.
pub fn time(data: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(data) else {
        return Outcome::Refused;
    };
    work::bounded(work::PURE, data.len(), || {
        let Ok(time) = text.parse::<Time>() else {
            return Outcome::Refused;
        };
        assert_eq!(time.to_string().parse::<Time>(), Ok(time), "printed");
        if let Ok(micro) = text.parse::<MicroTime>() {
            assert_eq!(micro.to_string().parse::<MicroTime>(), Ok(micro), "printed");
            assert_eq!(micro.to_time(), time, "in seconds");
        }
        Outcome::Accepted
    })
}

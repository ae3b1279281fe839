//! One condition on one label.

use std::fmt;

use super::LabelLookup;
use crate::names;
use crate::quote::{json_list, quote};

/// The operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `key=value`: the label has this value.
    Equals,
    /// `key==value`: the same in another spelling, which printing keeps.
    DoubleEquals,
    /// `key!=value`: the label is absent or has another value.
    NotEquals,
    /// `key in (a,b)`: the label has one of the values.
    In,
    /// `key notin (a,b)`: the label is absent or has none of the values.
    NotIn,
    /// `key`: the label is there.
    Exists,
    /// `!key`: the label is absent.
    DoesNotExist,
    /// `key>1`: the label is a greater number.
    GreaterThan,
    /// `key<1`: the label is a smaller number.
    LessThan,
}

/// A condition on one label, of valid key and values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

/// The key or the values of a requirement are not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RequirementError {
    /// The problems, each with its field first; never empty.
    problems: Vec<String>,
}

impl Requirement {
    /// A requirement on the label `key`.
    ///
    /// # Errors
    /// When the key or a value breaks the rules for labels, or the number of values does not suit
    /// the operator. All that is wrong is reported at once.
    pub fn new(
        key: impl Into<String>,
        operator: Operator,
        values: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, RequirementError> {
        let values = values.into_iter().map(Into::into).collect();
        let requirement = Self {
            key: key.into(),
            operator,
            values,
        };
        let problems = requirement.problems();
        if problems.is_empty() {
            Ok(requirement)
        } else {
            Err(RequirementError { problems })
        }
    }

    /// The key of the label.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values that the label is compared with.
    #[must_use]
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Returns true if the labels meet this requirement.
    #[must_use]
    pub fn matches<L: LabelLookup + ?Sized>(&self, labels: &L) -> bool {
        let found = labels.get(&self.key);
        match self.operator {
            Operator::Exists => found.is_some(),
            Operator::DoesNotExist => found.is_none(),
            Operator::Equals | Operator::DoubleEquals | Operator::In => {
                found.is_some_and(|value| self.has(value))
            }
            Operator::NotEquals | Operator::NotIn => !found.is_some_and(|value| self.has(value)),
            Operator::GreaterThan => self.compare(found).is_some_and(|(is, than)| is > than),
            Operator::LessThan => self.compare(found).is_some_and(|(is, than)| is < than),
        }
    }

    /// The one value that the label must have, if there is just one.
    pub(super) fn exact_value(&self) -> Option<&str> {
        match (self.operator, self.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }

    fn has(&self, value: &str) -> bool {
        self.values.iter().any(|one| one == value)
    }

    /// The label and the value as numbers; labels that are no numbers compare with nothing.
    fn compare(&self, found: Option<&str>) -> Option<(i64, i64)> {
        Some((found?.parse().ok()?, self.values.first()?.parse().ok()?))
    }

    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = key_problem(&self.key, "key").into_iter().collect();
        if let Some(problem) = self.count_problem() {
            let values = json_list(&self.values);
            problems.push(format!("values: Invalid value: {values}: {problem}"));
        }
        if matches!(self.operator, Operator::GreaterThan | Operator::LessThan) {
            let problem = "for 'Gt', 'Lt' operators, the value must be an integer";
            let values = self.values.iter().enumerate();
            let wrong = values.filter(|(_, value)| value.parse::<i64>().is_err());
            problems.extend(wrong.map(|(at, value)| {
                format!("values[{at}]: Invalid value: {}: {problem}", quote(value))
            }));
        }
        for (at, value) in self.values.iter().enumerate() {
            let found = names::label_value(value);
            if !found.is_empty() {
                let (key, value, found) = (&self.key, quote(value), found.join("; "));
                problems.push(format!(
                    "values[{at}][{key}]: Invalid value: {value}: {found}"
                ));
            }
        }
        problems
    }

    fn count_problem(&self) -> Option<&'static str> {
        let count = self.values.len();
        let (is_right, problem) = match self.operator {
            Operator::In | Operator::NotIn => (
                count > 0,
                "for 'in', 'notin' operators, values set can't be empty",
            ),
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => (
                count == 1,
                "exact-match compatibility requires one single value",
            ),
            Operator::Exists | Operator::DoesNotExist => (
                count == 0,
                "values set must be empty for exists and does not exist",
            ),
            Operator::GreaterThan | Operator::LessThan => (
                count == 1,
                "for 'Gt', 'Lt' operators, exactly one value is required",
            ),
        };
        (!is_right).then_some(problem)
    }
}

/// The problem of a label key, behind the name of its field.
pub(super) fn key_problem(key: &str, place: &str) -> Option<String> {
    let found = names::qualified_name(key);
    let problem = || {
        format!(
            "{place}: Invalid value: {}: {}",
            quote(key),
            found.join("; ")
        )
    };
    (!found.is_empty()).then(problem)
}

impl fmt::Display for Requirement {
    /// Prints the values sorted, whatever order they are kept in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<_> = self.values.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        let (key, values) = (&self.key, sorted.join(","));
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

impl fmt::Display for RequirementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [one] => f.write_str(one),
            many => write!(f, "[{}]", many.join(", ")),
        }
    }
}

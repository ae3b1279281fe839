//! The structured form of label selectors, as API objects carry it.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Operator, Requirement, RequirementError, Selector};
use crate::quote;

/// A label query in an API object: labels to equal and expressions to meet, all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must have exactly these values.
    #[serde(
        default,
        deserialize_with = "null_is_empty",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub match_labels: BTreeMap<String, String>,
    /// Further conditions.
    #[serde(
        default,
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One expression of a [`LabelSelector`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelSelectorRequirement {
    /// The key of the label.
    #[serde(default)]
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`. Others are an error only when the selector is
    /// used, so that an object that has them can still be read.
    #[serde(default)]
    pub operator: String,
    /// The values that the label is compared with.
    #[serde(
        default,
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub values: Vec<String>,
}

/// A structured selector cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelSelectorError {
    /// There is no such operator.
    #[error("{} is not a valid label selector operator", quote(.operator))]
    UnknownOperator {
        /// The operator.
        operator: String,
    },
    /// A key or a value breaks the rules for labels.
    #[error(transparent)]
    Requirement(#[from] RequirementError),
}

impl TryFrom<&LabelSelector> for Selector {
    type Error = LabelSelectorError;

    fn try_from(selector: &LabelSelector) -> Result<Self, LabelSelectorError> {
        let labels = selector.match_labels.iter();
        let labels = labels.map(|(key, value)| Requirement::new(key, Operator::Equals, [value]));
        let expressions = selector.match_expressions.iter().map(Requirement::try_from);
        labels.map(|label| Ok(label?)).chain(expressions).collect()
    }
}

impl TryFrom<&LabelSelectorRequirement> for Requirement {
    type Error = LabelSelectorError;

    fn try_from(expression: &LabelSelectorRequirement) -> Result<Self, LabelSelectorError> {
        let operator = match expression.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => {
                return Err(LabelSelectorError::UnknownOperator {
                    operator: other.to_owned(),
                });
            }
        };
        Ok(Self::new(&expression.key, operator, &expression.values)?)
    }
}

/// Reads null as an absent field, as API servers do.
fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

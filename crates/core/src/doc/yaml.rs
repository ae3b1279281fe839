//! YAML in and out.

use super::Doc;

/// Text that is not YAML, or not YAML that JSON can hold.
#[derive(Debug, thiserror::Error)]
#[error("invalid YAML: {0}")]
pub struct YamlError(String);

impl Doc {
    /// Reads every document of a YAML text; empty documents are left out.
    pub fn parse_yaml(text: &str) -> Result<Vec<Self>, YamlError> {
        let docs: Vec<Self> =
            serde_saphyr::from_multiple(text).map_err(|error| YamlError::of(&error))?;
        Ok(docs.into_iter().filter(|doc| !doc.is_null()).collect())
    }

    /// The document as YAML.
    pub fn to_yaml(&self) -> Result<String, YamlError> {
        serde_saphyr::to_string(self).map_err(|error| YamlError::of(&error))
    }
}

impl YamlError {
    /// The first line says what and where; the rest draws it.
    fn of(error: &impl ToString) -> Self {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        Self(line.strip_prefix("error: ").unwrap_or(line).to_owned())
    }
}

//! Environments: the variables an expression may name.

use std::sync::Arc;

use crate::types::{Decl, Type};

/// What an expression may refer to: declared variables and the Kubernetes function libraries.
///
/// ```
/// use windlass_cel::{Bindings, Budget, Decl, Environment, Type, Value};
///
/// let env = Environment::builder().variable("x", Decl::plain(Type::Int, 1)).build();
/// let program = env.compile("x > 1 && x < 10")?;
/// let bindings = Bindings::new().with("x", Value::Int(5));
/// let value = program.evaluate(&bindings, &mut Budget::default())?;
/// assert_eq!(value.as_bool(), Some(true));
/// assert!(env.compile("x + 'a'").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Environment(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    variables: Vec<(String, Arc<Decl>)>,
    has_bind: bool,
    /// True if expressions may construct `Object` and `JSONPatch`.
    has_patch_types: bool,
    /// The place of the variable whose fields are expressions of their own.
    composed: Option<usize>,
}

/// Declares what an [`Environment`] has.
#[derive(Debug, Default)]
#[must_use]
pub struct EnvironmentBuilder(Inner);

impl EnvironmentBuilder {
    /// Declares a variable.
    pub fn variable(mut self, name: &str, decl: Arc<Decl>) -> Self {
        self.0.variables.push((name.to_owned(), decl));
        self
    }

    /// Adds `cel.bind`, which rules of custom resources do not have.
    pub fn with_bind(mut self) -> Self {
        self.0.has_bind = true;
        self
    }

    /// Adds the message types `Object`, `Object.spec` and so on, and `JSONPatch`, which mutations
    /// construct, and `jsonpatch.escapeKey`.
    pub fn with_patch_types(mut self) -> Self {
        self.0.has_patch_types = true;
        self
    }

    /// Declares the variable whose fields are evaluated when an expression first asks for them, by
    /// the [`LazyFields`](crate::LazyFields) of the evaluation.
    pub fn composed(mut self, name: &str, decl: Arc<Decl>) -> Self {
        self.0.composed = Some(self.0.variables.len());
        self.variable(name, decl)
    }

    /// The environment.
    #[must_use]
    pub fn build(self) -> Environment {
        Environment(Arc::new(self.0))
    }
}

impl Environment {
    /// Starts to declare an environment.
    pub fn builder() -> EnvironmentBuilder {
        EnvironmentBuilder::default()
    }

    /// Returns true if expressions may use `cel.bind`.
    pub(crate) fn has_bind(&self) -> bool {
        self.0.has_bind
    }

    /// Returns true if expressions may construct `Object` and `JSONPatch`.
    pub(crate) fn has_patch_types(&self) -> bool {
        self.0.has_patch_types
    }

    /// Returns true if this is the place of the composed variables.
    pub(crate) fn is_composed(&self, place: usize) -> bool {
        self.0.composed == Some(place)
    }

    /// The place and type of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<(usize, Type)> {
        let place = self
            .0
            .variables
            .iter()
            .position(|(known, _)| known == name)?;
        Some((place, self.0.variables[place].1.ty()))
    }

    pub(crate) fn decl(&self, place: usize) -> Option<&Arc<Decl>> {
        self.0.variables.get(place).map(|(_, decl)| decl)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.variables.iter().map(|(name, _)| name.as_str())
    }
}

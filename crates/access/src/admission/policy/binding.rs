//! Bindings: the requests for which a policy counts, and its parameters there.

use windlass_core::{Doc, LabelSelector, Selector};

use crate::matching::Matcher;

/// The consequence of a failed validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationAction {
    /// The request is refused.
    Deny,
    /// The client is warned.
    Warn,
    /// The audit log says so.
    Audit,
}

/// A compiled binding of a policy of either kind.
#[derive(Debug)]
pub struct PolicyBinding {
    /// The name of the binding.
    pub name: String,
    /// The name of its policy.
    pub policy: String,
    /// The requests it is limited to.
    pub matcher: Matcher,
    /// The parameters, if it names some.
    pub params: Option<ParamRef>,
    /// The consequences, in the order of the binding; none for mutating policies.
    pub actions: Vec<ValidationAction>,
}

/// A reference to parameters.
#[derive(Debug)]
pub struct ParamRef {
    /// Empty for the namespace of the request.
    pub namespace: String,
    /// The objects.
    pub selection: ParamSelection,
    /// True if a request is refused when there are none.
    pub is_required: bool,
}

/// The objects that a reference to parameters names.
#[derive(Debug)]
pub enum ParamSelection {
    /// The one of this name.
    Name(String),
    /// All whose labels match; the error is that of a selector that cannot be read.
    Labels(Result<Selector, String>),
}

impl PolicyBinding {
    /// Compiles a binding.
    #[must_use]
    pub fn new(policy_binding: &Doc) -> Self {
        let spec = policy_binding.at("/spec");
        let actions = spec.at("/validationActions").items().iter();
        Self {
            name: policy_binding.meta().name().to_owned(),
            policy: spec.str_at("/policyName").to_owned(),
            matcher: Matcher::of_binding(spec.at("/matchResources")),
            params: param_ref(spec.at("/paramRef")),
            actions: actions.filter_map(action).collect(),
        }
    }
}

fn action(name: &Doc) -> Option<ValidationAction> {
    match name.as_str()? {
        "Deny" => Some(ValidationAction::Deny),
        "Warn" => Some(ValidationAction::Warn),
        "Audit" => Some(ValidationAction::Audit),
        _ => None,
    }
}

impl ValidationAction {
    /// The word in bindings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Warn => "Warn",
            Self::Audit => "Audit",
        }
    }
}

fn param_ref(reference: &Doc) -> Option<ParamRef> {
    if reference.is_null() {
        return None;
    }
    let selection = match reference.str_at("/name") {
        "" => ParamSelection::Labels(selector(reference.at("/selector"))),
        name => ParamSelection::Name(name.to_owned()),
    };
    Some(ParamRef {
        namespace: reference.str_at("/namespace").to_owned(),
        selection,
        is_required: reference.str_at("/parameterNotFoundAction") == "Deny",
    })
}

fn selector(doc: &Doc) -> Result<Selector, String> {
    let structured = doc.decode::<LabelSelector>();
    let structured = structured.map_err(|error| error.to_string())?;
    Selector::try_from(&structured).map_err(|error| error.to_string())
}

//! `matchConditions` of webhooks: expressions that decide whether a request is intercepted.
//!
//! They see `object`, `oldObject` and `request`. Deliberately absent: `authorizer`; a condition that
//! names it is refused when it is written.

use std::sync::{Arc, LazyLock};

use windlass_cel::{
    Bindings, Budget, CALL_COST_LIMIT, Decl, Environment, EvalError, ListIdentity, Program, Type,
    Value,
};
use windlass_core::Doc;

/// The cost of all conditions of one webhook for one request.
const COST_LIMIT: u64 = 2_500_000;
/// The size of what has no limit of its own, for estimates.
const SIZE_MAX: u64 = 1 << 20;

/// The conditions of one webhook, compiled.
#[derive(Debug, Default)]
pub struct MatchConditions(Vec<MatchCondition>);

#[derive(Debug)]
struct MatchCondition {
    expression: String,
    program: Result<Program, String>,
}

/// The outcome of all conditions for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All are true.
    Matches,
    /// One is false, whatever the others say.
    Excludes,
    /// None is false, and some have no value.
    Fails(Vec<String>),
}

/// The variables of conditions.
fn environment() -> &'static Environment {
    static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
        let any = || Decl::plain(Type::Dyn, SIZE_MAX);
        Environment::builder()
            .variable("object", any())
            .variable("oldObject", any())
            .variable("request", request_decl())
            .build()
    });
    &ENVIRONMENT
}

/// The variable `request`: an AdmissionRequest without its uid and its objects.
#[must_use]
pub fn request_decl() -> Arc<Decl> {
    let text = || Decl::plain(Type::String, SIZE_MAX);
    let texts = || Decl::list(text(), ListIdentity::Place, SIZE_MAX);
    let named = |name: &str, last: &'static str| {
        let fields = ["group", "version", last].map(|field| (field.into(), text()));
        Decl::object(name, fields)
    };
    let kind = || named("kubernetes.GroupVersionKind", "kind");
    let resource = || named("kubernetes.GroupVersionResource", "resource");
    let user = Decl::object(
        "kubernetes.UserInfo",
        [
            ("username".into(), text()),
            ("uid".into(), text()),
            ("groups".into(), texts()),
            ("extra".into(), Decl::map(text(), texts(), SIZE_MAX)),
        ],
    );
    Decl::native_object(
        "kubernetes.AdmissionRequest",
        [
            ("kind".into(), kind()),
            ("resource".into(), resource()),
            ("subResource".into(), text()),
            ("requestKind".into(), kind()),
            ("requestResource".into(), resource()),
            ("requestSubResource".into(), text()),
            ("name".into(), text()),
            ("namespace".into(), text()),
            ("operation".into(), text()),
            ("userInfo".into(), user),
            ("dryRun".into(), Decl::plain(Type::Bool, 1)),
            ("options".into(), Decl::plain(Type::Dyn, SIZE_MAX)),
        ],
    )
}

/// Compiles one condition, or says in upstream's words why that fails.
///
/// # Errors
/// When the expression is not CEL, or its value is not a `bool`.
pub fn compile(expression: &str) -> Result<Program, String> {
    match environment().compile(expression) {
        Err(error) => Err(format!("compilation failed: {error}")),
        Ok(program) if !program.result_type().is_bool() => Err(format!(
            "must evaluate to bool but got {}",
            program.result_type()
        )),
        Ok(program) => Ok(program),
    }
}

impl MatchConditions {
    /// Compiles the list `matchConditions`.
    #[must_use]
    pub fn new(list: &Doc) -> Self {
        let compiled = |condition: &Doc| {
            let expression = condition.str_at("/expression").trim().to_owned();
            let program = compile(&expression);
            MatchCondition {
                expression,
                program,
            }
        };
        Self(list.items().iter().map(compiled).collect())
    }

    /// Returns true if there is no condition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Evaluates the conditions for a request. `is_cancelled` ends it early.
    #[must_use]
    pub fn evaluate(
        &self,
        (object, old, request): (&Doc, &Doc, &Doc),
        is_cancelled: &dyn Fn() -> bool,
    ) -> Verdict {
        static REQUEST: LazyLock<Arc<Decl>> = LazyLock::new(request_decl);
        let bindings = Bindings::new()
            .with("object", Value::from(object))
            .with("oldObject", Value::from(old))
            .with("request", Value::declared(request, &REQUEST));
        let mut budget = Budget::new(COST_LIMIT, CALL_COST_LIMIT).with_cancellation(is_cancelled);
        let mut failures = Vec::new();
        for condition in &self.0 {
            let value = match &condition.program {
                Err(why) => Err(why.clone()),
                Ok(program) => match program.evaluate(&bindings, &mut budget) {
                    Err(EvalError::Budget) => {
                        return Verdict::Fails(vec![EvalError::Budget.to_string()]);
                    }
                    Err(error) => Err(error.to_string()),
                    Ok(value) => Ok(value.as_bool()),
                },
            };
            match value {
                Ok(Some(true)) => {}
                Ok(Some(false)) => return Verdict::Excludes,
                Ok(None) => failures.push(condition.failure("no such overload")),
                Err(why) => failures.push(condition.failure(&why)),
            }
        }
        match failures.is_empty() {
            true => Verdict::Matches,
            false => Verdict::Fails(failures),
        }
    }
}

impl MatchCondition {
    fn failure(&self, why: &str) -> String {
        let expression = &self.expression;
        format!("expression '{expression}' resulted in error: {why}")
    }
}

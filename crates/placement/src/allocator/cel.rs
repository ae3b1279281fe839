//! Selectors in the expression language of Kubernetes.

use std::sync::Arc;

use windlass_cel::{
    Bindings, Budget, CALL_COST_LIMIT, DEVICE, Program, device_environment, device_value,
};

use super::selectors::{Compiler, DeviceView, Selector, Selectors};

/// Compiles the expression language of Kubernetes, with the variable `device`.
struct Cel;

struct Expression(Program);

impl Compiler for Cel {
    fn compile(&self, expression: &str) -> Result<Arc<dyn Selector>, String> {
        let program = device_environment().compile(expression);
        let program = program.map_err(|error| format!("compilation failed: {error}"))?;
        let result = program.result_type();
        if !result.may_be_bool() {
            return Err(format!(
                "must evaluate to bool or the unknown type, not {result}"
            ));
        }
        Ok(Arc::new(Expression(program)))
    }
}

impl Selector for Expression {
    fn matches(&self, device: &DeviceView<'_>) -> Result<bool, String> {
        let value =
            device_value(device.driver, device.device).map_err(|error| error.to_string())?;
        let mut budget = Budget::new(u64::MAX, CALL_COST_LIMIT);
        let value = self
            .0
            .evaluate(&Bindings::new().with(DEVICE, value), &mut budget);
        let value = value.map_err(|error| error.to_string())?;
        let answer = value.as_bool();
        answer.ok_or_else(|| "CEL expression did not evaluate to a boolean".to_owned())
    }
}

impl Default for Selectors {
    /// Selectors in the expression language of Kubernetes.
    fn default() -> Self {
        Self::new(Cel)
    }
}

//! A bounded cache of compiled programs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::environment::Environment;
use crate::error::CompileError;
use crate::program::Program;

/// Compiled programs of one environment, by their text. Only successes are kept, and when the
/// cache is full the oldest goes.
#[derive(Debug)]
pub struct ProgramCache {
    environment: Environment,
    limit: usize,
    programs: Mutex<Programs>,
}

#[derive(Debug, Default)]
struct Programs {
    by_text: HashMap<Arc<str>, Arc<Program>>,
    /// The texts in the order they came.
    order: VecDeque<Arc<str>>,
}

impl ProgramCache {
    /// A cache of at most so many programs.
    #[must_use]
    pub fn new(environment: Environment, limit: usize) -> Self {
        Self {
            environment,
            limit: limit.max(1),
            programs: Mutex::default(),
        }
    }

    /// The program of an expression, compiled if it was not before.
    pub fn get(&self, expression: &str) -> Result<Arc<Program>, CompileError> {
        if let Some(program) = self.programs.lock().by_text.get(expression) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(self.environment.compile(expression)?);
        let mut programs = self.programs.lock();
        if programs.by_text.len() >= self.limit
            && let Some(oldest) = programs.order.pop_front()
        {
            programs.by_text.remove(&oldest);
        }
        let text: Arc<str> = Arc::from(expression);
        if programs
            .by_text
            .insert(Arc::clone(&text), Arc::clone(&program))
            .is_none()
        {
            programs.order.push_back(text);
        }
        Ok(program)
    }
}

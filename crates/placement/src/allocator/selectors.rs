//! Selectors: expressions that say whether a device will do.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;
use windlass_core::{Doc, Str};

/// How many compiled expressions are kept. When there are more, all are compiled again.
const PROGRAMS_LIMIT: usize = 256;

/// A device as an expression sees it.
#[derive(Clone, Copy, Debug)]
pub struct DeviceView<'a> {
    /// The driver, which is also the domain of names without one.
    pub driver: &'a str,
    /// The entry of the device in its slice: attributes, capacity and the rest.
    pub device: &'a Doc,
}

/// A compiled expression.
pub trait Selector: Send + Sync {
    /// Whether a device will do.
    ///
    /// # Errors
    /// When the expression cannot be evaluated for this device, with the reason.
    fn matches(&self, device: &DeviceView<'_>) -> Result<bool, String>;
}

/// Compiles expressions.
pub trait Compiler: Send + Sync + 'static {
    /// Compiles an expression.
    ///
    /// # Errors
    /// When it is not a valid expression, with the reason.
    fn compile(&self, expression: &str) -> Result<Arc<dyn Selector>, String>;
}

/// Compiles expressions, each once. Clones share what is compiled.
#[derive(Clone)]
pub struct Selectors(Arc<Shared>);

struct Shared {
    compiler: Box<dyn Compiler>,
    programs: Mutex<HashMap<Str, Arc<Program>>>,
    last_id: AtomicU64,
}

/// A compiled expression with a number of its own, by which slices remember its answers.
pub(super) struct Program {
    pub(super) id: u64,
    pub(super) selector: Arc<dyn Selector>,
}

/// What an expression says about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Yes,
    No,
    Failed(Arc<str>),
}

impl Selectors {
    /// Selectors in the language of a compiler.
    #[must_use]
    pub fn new(compiler: impl Compiler) -> Self {
        Self(Arc::new(Shared {
            compiler: Box::new(compiler),
            programs: Mutex::default(),
            last_id: AtomicU64::new(0),
        }))
    }

    /// The compiled form of an expression. Only what compiles is kept.
    pub(super) fn compile(&self, expression: &str) -> Result<Arc<Program>, String> {
        if let Some(known) = self.0.programs.lock().get(expression) {
            return Ok(known.clone());
        }
        let selector = self.0.compiler.compile(expression)?;
        let id = self.0.last_id.fetch_add(1, Relaxed);
        let program = Arc::new(Program { id, selector });
        let mut programs = self.0.programs.lock();
        if programs.len() >= PROGRAMS_LIMIT {
            programs.clear();
        }
        programs.insert(Str::new(expression), program.clone());
        Ok(program)
    }
}

impl Program {
    pub(super) fn ask(&self, view: &DeviceView<'_>) -> Match {
        match self.selector.matches(view) {
            Ok(true) => Match::Yes,
            Ok(false) => Match::No,
            Err(error) => Match::Failed(error.into()),
        }
    }
}

impl fmt::Debug for Selectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selectors")
            .field("programs", &self.0.programs.lock().len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({})", self.id)
    }
}

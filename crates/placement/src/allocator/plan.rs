//! What the claims of a pod ask for.

use std::sync::Arc;

use windlass_core::{Doc, Key, Str};

use super::{
    DEVICES_LIMIT,
    error::AllocateError,
    selectors::{Program, Selectors},
};

/// Where classes are looked up.
pub trait Classes {
    /// The class of this name.
    fn class(&self, name: &str) -> Option<Doc>;
}

impl<F: Fn(&str) -> Option<Doc>> Classes for F {
    fn class(&self, name: &str) -> Option<Doc> {
        self(name)
    }
}

/// What the claims of one pod ask for, understood and compiled. It holds for every node.
#[derive(Debug)]
pub struct Plan {
    pub(super) claims: Vec<ClaimPlan>,
    /// The constraints of all claims.
    pub(super) constraints: Vec<Constraint>,
    /// Whether nothing but a free device can meet the first request, and nothing else is wrong.
    pub(super) needs_free_device: bool,
}

#[derive(Debug)]
pub(super) struct ClaimPlan {
    pub(super) key: Key,
    pub(super) claim: Doc,
    pub(super) requests: Vec<RequestPlan>,
}

/// A request, or a list of them of which the first that can be met is taken.
#[derive(Debug)]
pub(super) struct RequestPlan {
    pub(super) is_choice: bool,
    pub(super) alternatives: Vec<Alternative>,
}

#[derive(Debug)]
pub(super) struct Alternative {
    /// Its number among the alternatives of all claims.
    pub(super) id: usize,
    /// The name in results: `request`, or `request/subrequest`.
    pub(super) name: String,
    /// The name of the request.
    pub(super) base: String,
    pub(super) class: Doc,
    pub(super) amount: Amount,
    pub(super) is_admin: bool,
    pub(super) tolerations: Doc,
    pub(super) tests: Vec<Test>,
    /// The constraints that hold for it.
    pub(super) constraints: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    Exactly(usize),
    All,
}

/// A selector, and whose it is.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) program: Arc<Program>,
    /// `class c` or `claim ns/c`, and the number of the selector.
    pub(super) origin: String,
}

#[derive(Debug)]
pub(super) struct Constraint {
    pub(super) claim: usize,
    pub(super) rule: Rule,
    pub(super) domain: Str,
    pub(super) id: Str,
    /// The full name, as devices of other drivers carry it.
    pub(super) attribute: Str,
    requests: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// All devices have the same value.
    Match,
    /// No two devices have the same value.
    Distinct,
}

impl Plan {
    /// What these claims ask for. They are met together or not at all.
    ///
    /// # Errors
    /// When a claim asks for something that does not exist or cannot be understood.
    pub fn new(
        claims: &[Doc],
        classes: &dyn Classes,
        selectors: &Selectors,
    ) -> Result<Self, AllocateError> {
        let mut plan = Self {
            claims: Vec::with_capacity(claims.len()),
            constraints: Vec::new(),
            needs_free_device: false,
        };
        let mut reader = Reader {
            classes,
            selectors,
            next_id: 0,
        };
        for claim in claims {
            plan.add(claim, &mut reader)?;
        }
        plan.needs_free_device = plan.begins_with_need() && plan.is_small();
        Ok(plan)
    }

    /// Whether the first request needs a device for itself, whichever alternative is taken.
    fn begins_with_need(&self) -> bool {
        let first = self.claims.first().and_then(|claim| claim.requests.first());
        first.is_some_and(|request| {
            let mut alternatives = request.alternatives.iter();
            alternatives.all(|one| !one.is_admin && one.amount != Amount::Exactly(0))
        })
    }

    /// Whether no claim asks for too many devices, or for all there are.
    fn is_small(&self) -> bool {
        let most = |request: &RequestPlan| {
            let needs = request.alternatives.iter().map(|one| match one.amount {
                Amount::Exactly(count) => count,
                Amount::All => usize::MAX,
            });
            needs.max().unwrap_or(0)
        };
        self.claims.iter().all(|claim| {
            let needs = claim.requests.iter().map(most);
            needs.fold(0, usize::saturating_add) <= DEVICES_LIMIT
        })
    }

    fn add(&mut self, claim: &Doc, reader: &mut Reader<'_>) -> Result<(), AllocateError> {
        let key = claim.meta().key();
        let index = self.claims.len();
        let first = self.constraints.len();
        for (at, constraint) in claim
            .at("/spec/devices/constraints")
            .items()
            .iter()
            .enumerate()
        {
            let constraint = Constraint::of(constraint, index).ok_or_else(|| {
                invalid(format!(
                    "claim {key}, constraint #{at}: empty constraint (unsupported constraint type?)"
                ))
            })?;
            self.constraints.push(constraint);
        }
        let mut requests = Vec::new();
        for request in claim.at("/spec/devices/requests").items() {
            let mut request = reader.request(&key, request)?;
            for alternative in &mut request.alternatives {
                let own = self.constraints.iter().enumerate().skip(first);
                let own = own.filter(|(_, constraint)| constraint.holds_for(alternative));
                alternative.constraints = own.map(|(at, _)| at).collect();
            }
            requests.push(request);
        }
        self.claims.push(ClaimPlan {
            key,
            claim: claim.clone(),
            requests,
        });
        Ok(())
    }

    /// All alternatives of all claims, in the order of their numbers.
    pub(super) fn alternatives(&self) -> impl Iterator<Item = &Alternative> {
        let requests = self.claims.iter().flat_map(|claim| &claim.requests);
        requests.flat_map(|request| &request.alternatives)
    }

    /// Whether any request leaves a choice, so that nodes differ in how well they do.
    #[must_use]
    pub fn has_choices(&self) -> bool {
        let mut requests = self.claims.iter().flat_map(|claim| &claim.requests);
        requests.any(|request| request.is_choice)
    }
}

impl Constraint {
    fn of(constraint: &Doc, claim: usize) -> Option<Self> {
        let named = [
            ("/matchAttribute", Rule::Match),
            ("/distinctAttribute", Rule::Distinct),
        ];
        let mut named = named
            .iter()
            .map(|(pointer, rule)| (constraint.str_at(pointer), *rule));
        let (attribute, rule) = named.find(|(attribute, _)| !attribute.is_empty())?;
        let (domain, id) = attribute.split_once('/').unwrap_or(("", attribute));
        let requests = constraint.at("/requests").items().iter();
        Some(Self {
            claim,
            rule,
            domain: Str::new(domain),
            id: Str::new(id),
            attribute: Str::new(attribute),
            requests: requests
                .filter_map(|name| Some(name.as_str()?.to_owned()))
                .collect(),
        })
    }

    fn holds_for(&self, alternative: &Alternative) -> bool {
        self.requests.is_empty()
            || self.requests.contains(&alternative.base)
            || self.requests.contains(&alternative.name)
    }

    /// The attribute of a device; `None` if it has none of this name.
    pub(super) fn value<'a>(&self, driver: &Str, device: &'a Doc) -> Option<&'a Doc> {
        let attributes = device.get("attributes")?;
        let full = attributes.get(&self.attribute);
        full.or_else(|| attributes.get(&self.id).filter(|_| self.domain == *driver))
    }
}

/// Reads requests.
struct Reader<'a> {
    classes: &'a dyn Classes,
    selectors: &'a Selectors,
    next_id: usize,
}

impl Reader<'_> {
    fn request(&mut self, key: &Key, request: &Doc) -> Result<RequestPlan, AllocateError> {
        let base = request.str_at("/name");
        let list = request.at("/firstAvailable").items();
        let exactly = request.at("/exactly");
        if list.is_empty() && exactly.is_null() {
            return Err(invalid(format!(
                "claim {key}, request {base}: unknown request type"
            )));
        }
        let alternatives: Result<Vec<_>, _> = if list.is_empty() {
            std::iter::once(self.alternative(key, base, base.to_owned(), exactly)).collect()
        } else {
            let name = |sub: &Doc| format!("{base}/{}", sub.str_at("/name"));
            let list = list.iter();
            list.map(|sub| self.alternative(key, base, name(sub), sub))
                .collect()
        };
        Ok(RequestPlan {
            is_choice: !list.is_empty(),
            alternatives: alternatives?,
        })
    }

    fn alternative(
        &mut self,
        key: &Key,
        base: &str,
        name: String,
        request: &Doc,
    ) -> Result<Alternative, AllocateError> {
        let fail = |text: String| Err(invalid(format!("claim {key}, request {name}: {text}")));
        if request
            .get("capacity")
            .is_some_and(|capacity| !capacity.is_null())
        {
            let text = "has capacity requests, but the DRAConsumableCapacity feature is disabled";
            return fail(text.to_owned());
        }
        let class_name = request.str_at("/deviceClassName");
        if class_name.is_empty() {
            return fail("missing device class name (unsupported request type?)".to_owned());
        }
        let Some(class) = self.classes.class(class_name) else {
            return fail(format!(
                "could not retrieve device class {class_name}: \
                 deviceclass.resource.k8s.io {class_name:?} not found"
            ));
        };
        let amount = match request.str_at("/allocationMode") {
            "" | "ExactCount" => {
                let count = request.at("/count").as_u64().unwrap_or(1);
                Amount::Exactly(usize::try_from(count).unwrap_or(usize::MAX))
            }
            "All" => Amount::All,
            other => return fail(format!("unsupported count mode {other}")),
        };
        let mut tests = self.tests(&format!("class {class_name}"), class.at("/spec/selectors"))?;
        tests.extend(self.tests(&format!("claim {key}"), request.at("/selectors"))?);
        let id = self.next_id;
        self.next_id += 1;
        Ok(Alternative {
            id,
            name,
            base: base.to_owned(),
            class,
            amount,
            is_admin: request.at("/adminAccess").as_bool() == Some(true),
            tolerations: request.at("/tolerations").clone(),
            tests,
            constraints: Vec::new(),
        })
    }

    fn tests(&self, whose: &str, selectors: &Doc) -> Result<Vec<Test>, AllocateError> {
        let selectors = selectors.items().iter().enumerate();
        let tests = selectors.map(|(at, selector)| {
            let origin = format!("{whose}: selector #{at}");
            let expression = selector.str_at("/cel/expression");
            if expression.is_empty() {
                let text = "CEL expression empty (unsupported selector type?)";
                return Err(invalid(format!("{origin}: {text}")));
            }
            let program = self.selectors.compile(expression);
            let program = program
                .map_err(|error| invalid(format!("{origin}: CEL compile error: {error}")))?;
            Ok(Test { program, origin })
        });
        tests.collect()
    }
}

fn invalid(text: String) -> AllocateError {
    AllocateError::Invalid(text)
}

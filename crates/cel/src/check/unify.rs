//! Which types fit which, and what type parameters stand for.

use std::sync::Arc;

use crate::plan::{Plan, Step};
use crate::types::Type;

/// What the type parameters seen so far stand for.
#[derive(Clone, Default)]
pub(super) struct Unifier {
    bound: Vec<Option<Type>>,
}

impl Unifier {
    /// A new type parameter.
    pub(super) fn fresh(&mut self) -> Type {
        self.bound.push(None);
        Type::Variable(self.bound.len() - 1)
    }

    /// A type of a signature with parameters of its own, which start at `base`.
    pub(super) fn instance(ty: &Type, base: usize) -> Type {
        match ty {
            Type::Variable(number) => Type::Variable(base + number),
            Type::List(item) => Type::list(Self::instance(item, base)),
            Type::Map(key, value) => {
                Type::map(Self::instance(key, base), Self::instance(value, base))
            }
            Type::Optional(inner) => Type::optional(Self::instance(inner, base)),
            Type::Type(inner) => Type::Type(Arc::new(Self::instance(inner, base))),
            other => other.clone(),
        }
    }

    /// The type with every known parameter replaced.
    pub(super) fn resolve(&self, ty: &Type) -> Type {
        match ty {
            Type::Variable(number) => match self.bound.get(*number) {
                Some(Some(bound)) => self.resolve(bound),
                _ => ty.clone(),
            },
            Type::List(item) => Type::list(self.resolve(item)),
            Type::Map(key, value) => Type::map(self.resolve(key), self.resolve(value)),
            Type::Optional(inner) => Type::optional(self.resolve(inner)),
            Type::Type(inner) => Type::Type(Arc::new(self.resolve(inner))),
            other => other.clone(),
        }
    }

    /// Whether a value of one type may stand where the other is asked for.
    pub(super) fn assign(&mut self, to: &Type, from: &Type) -> bool {
        let (to, from) = (self.resolve(to), self.resolve(from));
        match (&to, &from) {
            (Type::Variable(a), Type::Variable(b)) if a == b => true,
            (Type::Variable(number), other) | (other, Type::Variable(number)) => {
                if mentions(other, *number) {
                    return false;
                }
                self.bound[*number] = Some(other.clone());
                true
            }
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::List(a), Type::List(b))
            | (Type::Optional(a), Type::Optional(b))
            | (Type::Type(a), Type::Type(b)) => matches!(to, Type::Type(_)) || self.assign(a, b),
            (Type::Map(ka, va), Type::Map(kb, vb)) => self.assign(ka, kb) && self.assign(va, vb),
            (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(a, b),
            (Type::Opaque(a), Type::Opaque(b)) => a == b,
            (Type::Message(a), Type::Message(b)) => a == b,
            (a, b) => is_same_plain(a, b),
        }
    }
}

fn mentions(ty: &Type, number: usize) -> bool {
    match ty {
        Type::Variable(other) => *other == number,
        Type::List(inner) | Type::Optional(inner) | Type::Type(inner) => mentions(inner, number),
        Type::Map(key, value) => mentions(key, number) || mentions(value, number),
        _ => false,
    }
}

fn is_nullable(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Null
            | Type::Object(_)
            | Type::Opaque(_)
            | Type::Message(_)
            | Type::Optional(_)
            | Type::Timestamp
            | Type::Duration
    )
}

fn is_same_plain(a: &Type, b: &Type) -> bool {
    matches!(
        (a, b),
        (Type::Bool, Type::Bool)
            | (Type::Int, Type::Int)
            | (Type::Uint, Type::Uint)
            | (Type::Double, Type::Double)
            | (Type::String, Type::String)
            | (Type::Bytes, Type::Bytes)
            | (Type::Timestamp, Type::Timestamp)
            | (Type::Duration, Type::Duration)
    )
}

/// Replaces the type parameters in a whole plan by what they turned out to be.
pub(super) fn resolve_plan(unifier: &Unifier, plan: &mut Plan) {
    plan.ty = unifier.resolve(&plan.ty);
    if matches!(plan.ty, Type::Variable(_)) {
        plan.ty = Type::Dyn;
    }
    match &mut plan.step {
        Step::Literal(_)
        | Step::Variable(_)
        | Step::Composed { .. }
        | Step::Local(_)
        | Step::TakeLocal(_) => {}
        Step::Select { operand, .. } => resolve_plan(unifier, operand),
        Step::And(parts) | Step::Or(parts) => parts
            .iter_mut()
            .for_each(|part| resolve_plan(unifier, part)),
        Step::Conditional(parts) => parts
            .iter_mut()
            .for_each(|part| resolve_plan(unifier, part)),
        Step::NotStrictlyFalse(part) => resolve_plan(unifier, part),
        Step::Call(call) => call
            .args
            .iter_mut()
            .for_each(|arg| resolve_plan(unifier, arg)),
        Step::List(items) => items
            .iter_mut()
            .for_each(|(item, _)| resolve_plan(unifier, item)),
        Step::Map(entries) => entries.iter_mut().for_each(|(key, value, _)| {
            resolve_plan(unifier, key);
            resolve_plan(unifier, value);
        }),
        Step::Message(_, fields) => fields
            .iter_mut()
            .for_each(|(_, value, _)| resolve_plan(unifier, value)),
        Step::Fold(fold) => {
            for part in [
                &mut fold.range,
                &mut fold.init,
                &mut fold.condition,
                &mut fold.step,
                &mut fold.result,
            ] {
                resolve_plan(unifier, part);
            }
        }
    }
}

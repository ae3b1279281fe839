//! Taints of nodes and the tolerations of pods.

use windlass_core::Doc;

/// The taint that a node has while it takes no new pods.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

impl Effect {
    fn of(text: &str) -> Option<Self> {
        match text {
            "NoSchedule" => Some(Self::NoSchedule),
            "PreferNoSchedule" => Some(Self::PreferNoSchedule),
            "NoExecute" => Some(Self::NoExecute),
            _ => None,
        }
    }
}

/// A mark on a node that keeps pods away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taint {
    key: String,
    value: String,
    effect: Effect,
}

impl Taint {
    pub(super) fn all_of(node: &Doc) -> Vec<Self> {
        let taints = node.at("/spec/taints").items().iter();
        let read = taints.filter_map(|taint| {
            Some(Self {
                key: taint.str_at("/key").to_owned(),
                value: taint.str_at("/value").to_owned(),
                effect: Effect::of(taint.str_at("/effect"))?,
            })
        });
        read.collect()
    }

    fn unschedulable() -> Self {
        Self {
            key: UNSCHEDULABLE.to_owned(),
            value: String::new(),
            effect: Effect::NoSchedule,
        }
    }
}

/// A taint that a pod puts up with.
#[derive(Clone, Debug)]
pub(super) struct Toleration {
    key: String,
    value: String,
    operator: Comparison,
    /// `None` for every effect.
    effect: Option<Effect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Exists,
    Greater,
    Less,
    Unknown,
}

impl Toleration {
    pub(super) fn all_of(spec: &Doc) -> Vec<Self> {
        let tolerations = spec.at("/tolerations").items().iter();
        let read = tolerations.filter_map(|toleration| {
            let effect = toleration.str_at("/effect");
            Some(Self {
                key: toleration.str_at("/key").to_owned(),
                value: toleration.str_at("/value").to_owned(),
                operator: match toleration.str_at("/operator") {
                    "" | "Equal" => Comparison::Equal,
                    "Exists" => Comparison::Exists,
                    "Gt" => Comparison::Greater,
                    "Lt" => Comparison::Less,
                    _ => Comparison::Unknown,
                },
                effect: match effect {
                    "" => None,
                    effect => Some(Effect::of(effect)?),
                },
            })
        });
        read.collect()
    }

    fn tolerates(&self, taint: &Taint) -> bool {
        if self.effect.is_some_and(|effect| effect != taint.effect) {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        let numbers = || {
            Some((
                taint.value.parse::<i64>().ok()?,
                self.value.parse::<i64>().ok()?,
            ))
        };
        match self.operator {
            Comparison::Equal => self.value == taint.value,
            Comparison::Exists => true,
            Comparison::Greater => numbers().is_some_and(|(is, than)| is > than),
            Comparison::Less => numbers().is_some_and(|(is, than)| is < than),
            Comparison::Unknown => false,
        }
    }

    /// Whether a pod may come to a node in spite of its taints.
    pub(super) fn admit(tolerations: &[Self], taints: &[Taint]) -> bool {
        let hard = taints
            .iter()
            .filter(|taint| taint.effect != Effect::PreferNoSchedule);
        hard.into_iter().all(|taint| {
            tolerations
                .iter()
                .any(|toleration| toleration.tolerates(taint))
        })
    }

    /// Whether a pod may come to a node that takes no new pods.
    pub(super) fn admit_unschedulable(tolerations: &[Self]) -> bool {
        Self::admit(tolerations, &[Taint::unschedulable()])
    }

    /// How many taints would rather keep the pod away.
    pub(super) fn count_unwelcome(tolerations: &[Self], taints: &[Taint]) -> i64 {
        let soft = taints
            .iter()
            .filter(|taint| taint.effect == Effect::PreferNoSchedule);
        // Only tolerations that can mean this effect count.
        let suits = |toleration: &&Self| {
            toleration
                .effect
                .is_none_or(|effect| effect == Effect::PreferNoSchedule)
        };
        let unwelcome = soft.filter(|taint| {
            !tolerations
                .iter()
                .filter(suits)
                .any(|toleration| toleration.tolerates(taint))
        });
        i64::try_from(unwelcome.count()).unwrap_or(i64::MAX)
    }
}

//! Amounts of resources, as the scheduler adds and compares them.

use windlass_core::{Doc, Quantity, Str};

/// What a container that says nothing is taken to use, for scores only.
const CPU_MILLI_DEFAULT: i64 = 100;
const MEMORY_DEFAULT: i64 = 200 * 1024 * 1024;

/// How the names of huge pages begin.
const HUGE_PAGES: &str = "hugepages-";

/// Processor, memory, storage, and whatever else has a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Resources {
    pub(crate) cpu_milli: i64,
    pub(crate) memory: i64,
    pub(super) storage: i64,
    /// Sorted by name, none twice.
    pub(super) others: Vec<(Str, i64)>,
}

impl Resources {
    /// Reads a list of resources. The number of pods is not one of them here.
    pub(crate) fn of(list: &Doc) -> Self {
        let mut read = Self::default();
        for (name, amount) in list.as_object().into_iter().flat_map(|list| list.iter()) {
            let amount = quantity(amount);
            match name.as_str() {
                "cpu" => read.cpu_milli = amount.milli_value(),
                "memory" => read.memory = amount.value(),
                "ephemeral-storage" => read.storage = amount.value(),
                "pods" => {}
                _ => *read.other(name) = amount.value(),
            }
        }
        read
    }

    pub(super) fn is_zero(&self) -> bool {
        self.cpu_milli == 0 && self.memory == 0 && self.storage == 0 && self.others.is_empty()
    }

    /// The amount of a resource that has no field of its own.
    pub(super) fn amount(&self, name: &str) -> i64 {
        let found = self.others.binary_search_by(|(key, _)| (**key).cmp(name));
        found.map_or(0, |at| self.others[at].1)
    }

    fn other(&mut self, name: &Str) -> &mut i64 {
        let found = self
            .others
            .binary_search_by(|(key, _)| (**key).cmp(name.as_str()));
        let at = found.unwrap_or_else(|at| {
            self.others.insert(at, (name.clone(), 0));
            at
        });
        &mut self.others[at].1
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.combine(more, i64::saturating_add);
    }

    pub(super) fn subtract(&mut self, less: &Self) {
        self.combine(less, i64::saturating_sub);
    }

    /// Requests of the pod as a whole stand in place of those of its containers, for the resources
    /// that a pod can have as a whole.
    fn replace(&mut self, whole: &Doc) {
        let read = Self::of(whole);
        if whole.get("cpu").is_some() {
            self.cpu_milli = read.cpu_milli;
        }
        if whole.get("memory").is_some() {
            self.memory = read.memory;
        }
        for (name, amount) in read.others {
            if name.starts_with(HUGE_PAGES) {
                *self.other(&name) = amount;
            }
        }
    }

    fn raise_to(&mut self, least: &Self) {
        self.combine(least, i64::max);
    }

    fn combine(&mut self, with: &Self, function: fn(i64, i64) -> i64) {
        self.cpu_milli = function(self.cpu_milli, with.cpu_milli);
        self.memory = function(self.memory, with.memory);
        self.storage = function(self.storage, with.storage);
        for (name, amount) in &with.others {
            let own = self.other(name);
            *own = function(*own, *amount);
        }
    }
}

pub(super) fn quantity(amount: &Doc) -> Quantity {
    let read = match amount.as_str() {
        Some(text) => text.parse().ok(),
        None => amount
            .as_i64()
            .map(|units| Quantity::new(units, windlass_core::QuantityFormat::DecimalSi)),
    };
    read.unwrap_or(Quantity::ZERO)
}

/// What a pod needs: its containers and side cars together, or the greediest step of its
/// initialization, whichever is more; and the overhead.
pub(crate) fn requests_of(spec: &Doc) -> Resources {
    sum(spec, |container| {
        Resources::of(container.at("/resources/requests"))
    })
}

/// Processor and memory that a pod counts with in scores, where saying nothing is not nothing.
pub(super) fn scored_requests_of(spec: &Doc) -> (i64, i64) {
    let total = sum(spec, |container| {
        let requests = container.at("/resources/requests");
        let mut read = Resources::of(requests);
        if requests.get("cpu").is_none() {
            read.cpu_milli = CPU_MILLI_DEFAULT;
        }
        if requests.get("memory").is_none() {
            read.memory = MEMORY_DEFAULT;
        }
        read
    });
    (total.cpu_milli, total.memory)
}

fn sum(spec: &Doc, requests: impl Fn(&Doc) -> Resources) -> Resources {
    let mut total = Resources::default();
    for container in spec.at("/containers").items() {
        total.add(&requests(container));
    }
    let (mut side_cars, mut peak) = (Resources::default(), Resources::default());
    for container in spec.at("/initContainers").items() {
        let mut step = requests(container);
        if container.str_at("/restartPolicy") == "Always" {
            total.add(&step);
            side_cars.add(&step);
            peak.raise_to(&side_cars);
        } else {
            step.add(&side_cars);
            peak.raise_to(&step);
        }
    }
    total.raise_to(&peak);
    total.replace(spec.at("/resources/requests"));
    total.add(&Resources::of(spec.at("/overhead")));
    total.others.retain(|(_, amount)| *amount != 0);
    total
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn whole_pod_requests_stand_in_place_of_those_of_containers() {
        let of_container = doc!({
            "cpu": "2", "memory": "3", "ephemeral-storage": "5", "hugepages-2Mi": "4Mi",
            "hugepages-1Gi": "1Gi", "example.com/gpu": "1",
        });
        let whole = doc!({
            "cpu": "1", "hugepages-2Mi": "2Mi", "hugepages-64Ki": "64Ki",
            "ephemeral-storage": "9", "example.com/gpu": "9",
        });
        let spec = doc!({
            "containers": [{ "resources": { "requests": of_container } }],
            "resources": { "requests": whole },
            "overhead": { "hugepages-2Mi": "2Mi" },
        });
        let requests = requests_of(&spec);
        assert_eq!(
            (requests.cpu_milli, requests.memory, requests.storage),
            (1000, 3, 5)
        );
        let others = [
            ("example.com/gpu", 1),
            ("hugepages-1Gi", 1 << 30),
            ("hugepages-2Mi", 4 << 20),
            ("hugepages-64Ki", 64 << 10),
        ];
        let others = others.map(|(name, amount)| (Str::new(name), amount));
        assert_eq!(requests.others, others);
    }
}

//! The plug-ins that are switched off by name.

/// The names of all of upstream's plug-ins, in its order.
const NAMES: [&str; 43] = [
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PodGroupProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "PodGroupWorkloadExists",
    "NodeDeclaredFeatureValidator",
    "JobValidation",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
    "PodSecurityPolicy",
    "SecurityContextDeny",
];

/// The plug-ins of [`NAMES`] that are off unless somebody asks for them, and that are not here.
const ABSENT: [&str; 18] = [
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodNodeSelector",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "OwnerReferencesPermissionEnforcement",
    "DenyServiceExternalIPs",
    "AlwaysDeny",
    "PodSecurityPolicy",
    "SecurityContextDeny",
    "NodeDeclaredFeatureValidator",
    "JobValidation",
    "PodGroupProtection",
];

/// A set of admission plug-ins that are switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisabledPlugins(u64);

/// A name that no plug-in has, or one of a plug-in that is not here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PluginNameError {
    /// No plug-in has the name.
    #[error("admission-control plugin {0:?} is unknown")]
    Unknown(String),
    /// The plug-in is not implemented, and so cannot be switched on.
    #[error("admission-control plugin {0:?} is not implemented by windlass")]
    Absent(String),
}

impl DisabledPlugins {
    /// The set with one more plug-in.
    ///
    /// # Errors
    /// When no plug-in has the name.
    pub fn with(self, name: &str) -> Result<Self, PluginNameError> {
        let bit = bit_of(name).ok_or_else(|| PluginNameError::Unknown(name.to_owned()))?;
        Ok(Self(self.0 | bit))
    }

    /// The set without a plug-in, which is thereby switched on.
    ///
    /// # Errors
    /// When no plug-in has the name, or it is not implemented.
    pub fn without(self, name: &str) -> Result<Self, PluginNameError> {
        let bit = bit_of(name).ok_or_else(|| PluginNameError::Unknown(name.to_owned()))?;
        if ABSENT.contains(&name) {
            return Err(PluginNameError::Absent(name.to_owned()));
        }
        Ok(Self(self.0 & !bit))
    }

    /// Returns true if a plug-in is switched off.
    #[must_use]
    pub fn contains(self, name: &str) -> bool {
        self.0 != 0 && bit_of(name).is_some_and(|bit| self.0 & bit != 0)
    }
}

fn bit_of(name: &str) -> Option<u64> {
    let position = NAMES.iter().position(|known| *known == name)?;
    Some(1 << position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_schema::built_in;

    #[test]
    fn every_plugin_of_a_row_can_be_switched_off_by_its_name() {
        let rows = built_in::all();
        let rows = rows.iter().flat_map(|row| row.needs.admission);
        for name in rows
            .map(|plugin| plugin.name())
            .filter(|name| !name.is_empty())
        {
            let off = DisabledPlugins::default().with(name).unwrap();
            assert!(off.contains(name));
            assert!(!off.without(name).unwrap().contains(name));
        }
    }

    #[test]
    fn unknown_and_absent_plugins_are_errors() {
        let none = DisabledPlugins::default();
        assert_eq!(
            none.with("Magic"),
            Err(PluginNameError::Unknown("Magic".into()))
        );
        let absent = none.without("AlwaysDeny");
        assert_eq!(absent, Err(PluginNameError::Absent("AlwaysDeny".into())));
    }
}

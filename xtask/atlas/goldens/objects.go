package main

import "k8s.io/apimachinery/pkg/runtime/schema"

type chosenObject struct {
	kind schema.GroupVersionKind
	json string
}

func gvk(group, version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

// chosenObjects are what kubectl and controllers send, and the edges of every special type.
var chosenObjects = []chosenObject{
	{gvk("", "v1", "Namespace"), `{"metadata":{"name":"demo"}}`},
	{gvk("", "v1", "Pod"), `{}`},
	{gvk("", "v1", "Pod"), `{"metadata":{"name":"web","creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":"1969-12-31T23:59:59Z","labels":{"app":"web","":"empty"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u","controller":true}],"managedFields":[{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"k:{\"name\":\"a\"}":{".":{}}}}}]},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"web","image":"web:1","command":["sh","-c",""],"ports":[{"containerPort":80}],"env":[{"name":"A"},{"name":"B","valueFrom":{"configMapKeyRef":{"name":"c","key":"k","optional":false}}}],"resources":{"limits":{"cpu":"1.500","memory":"1024Mi"},"requests":{"cpu":"0.1","memory":"1e9","example.com/x":"1000000000000000000000"}},"livenessProbe":{"httpGet":{"path":"/","port":"http"},"periodSeconds":5},"readinessProbe":{"tcpSocket":{"port":-1}}}],"volumes":[{"name":"e","emptyDir":{}},{"name":"s","secret":{"secretName":"s","defaultMode":420}},{"name":"none"}],"tolerations":[{"operator":"Exists","tolerationSeconds":300}],"affinity":{}},"status":{"phase":"Running","startTime":null,"conditions":[{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"}],"containerStatuses":[{"name":"web","state":{"running":{"startedAt":"2026-01-02T03:04:05Z"}},"lastState":{},"started":false}]}}`},
	{gvk("", "v1", "ConfigMap"), `{"metadata":{"name":"c"},"data":{"k":"v","empty":""},"binaryData":{"b":"AAECAw==","e":"","f":"/w=="},"immutable":false}`},
	{gvk("", "v1", "Secret"), `{"metadata":{"generateName":"s-"},"data":{"a":"aGVsbG8=","b":""},"type":"Opaque"}`},
	{gvk("", "v1", "Service"), `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80},{"name":"n","port":443,"targetPort":"https","nodePort":30000,"protocol":"TCP"}],"selector":{"app":"web"},"clusterIP":"None"}}`},
	{gvk("", "v1", "Event"), `{"metadata":{"name":"e"},"involvedObject":{"kind":"Pod"},"count":3,"eventTime":"2026-01-02T03:04:05.678901Z","firstTimestamp":"2026-01-02T03:04:05Z","reason":"Started","source":{"component":"kubelet"}}`},
	{gvk("", "v1", "Node"), `{"metadata":{"name":"n"},"spec":{"podCIDRs":["10.0.0.0/24"]},"status":{"capacity":{"pods":"110"},"addresses":[{"type":"Hostname","address":"n"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":10250}}}}`},
	{gvk("", "v1", "ServiceAccount"), `{"metadata":{"name":"default"},"secrets":[{"name":"t"}]}`},
	{gvk("", "v1", "ResourceQuota"), `{"metadata":{"name":"q"},"spec":{"hard":{"pods":"10","cpu":"2500m"},"scopes":["BestEffort"]}}`},
	{gvk("", "v1", "Binding"), `{"metadata":{"name":"web"},"target":{"kind":"Node","name":"n"}}`},
	{gvk("", "v1", "PersistentVolume"), `{"metadata":{"name":"p"},"spec":{"capacity":{"storage":"1Gi"},"hostPath":{"path":"/data"},"accessModes":["ReadWriteOnce"]}}`},
	{gvk("", "v1", "Status"), `{"status":"Failure","message":"no","code":404,"details":{"causes":[{"reason":"r"}]}}`},
	{gvk("", "v1", "DeleteOptions"), `{"gracePeriodSeconds":0,"preconditions":{"uid":"u"},"propagationPolicy":"Foreground","dryRun":["All"]}`},
	{gvk("apps", "v1", "DeleteOptions"), `{}`},
	{gvk("apps", "v1", "Deployment"), `{"metadata":{"name":"web"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":0}}}}`},
	{gvk("apps", "v1", "Deployment"), `{}`},
	{gvk("apps", "v1", "ControllerRevision"), `{"metadata":{"name":"r"},"data":{"spec":{"b":[1,2.5,null]}},"revision":7}`},
	{gvk("apps", "v1", "StatefulSet"), `{"spec":{"volumeClaimTemplates":[{"metadata":{"name":"d"},"spec":{"resources":{"requests":{"storage":"1Gi"}}}}]}}`},
	{gvk("authentication.k8s.io", "v1", "TokenRequest"), `{"spec":{"audiences":["api"],"expirationSeconds":600}}`},
	{gvk("authentication.k8s.io", "v1", "SelfSubjectReview"), `{"status":{"userInfo":{"username":"u","groups":["g"],"extra":{"k":["a","b"],"none":[]}}}}`},
	{gvk("authorization.k8s.io", "v1", "SelfSubjectAccessReview"), `{"spec":{"resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}}}`},
	{gvk("autoscaling", "v1", "Scale"), `{"spec":{"replicas":0}}`},
	{gvk("autoscaling", "v2", "HorizontalPodAutoscaler"), `{"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"},"minReplicas":1,"maxReplicas":5,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"100m"}}}]}}`},
	{gvk("batch", "v1", "CronJob"), `{"metadata":{"name":"c"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{"containers":null}}}}}}`},
	{gvk("batch", "v1", "Job"), `{"metadata":{"name":"j"},"spec":{"podFailurePolicy":{"rules":[{"action":"Ignore","onExitCodes":{"operator":"In","values":[1,2,-3]},"onPodConditions":null}]},"template":{}},"status":{"uncountedTerminatedPods":{"succeeded":["u"]}}}`},
	{gvk("coordination.k8s.io", "v1", "Lease"), `{"spec":{"holderIdentity":"me","leaseDurationSeconds":15,"renewTime":"2026-01-02T03:04:05.000006Z","acquireTime":null}}`},
	{gvk("networking.k8s.io", "v1", "Ingress"), `{"spec":{"rules":[{"host":"h","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"s","port":{"number":80}}}}]}},{"host":"empty"}]}}`},
	{gvk("policy", "v1", "PodDisruptionBudget"), `{"spec":{"minAvailable":"50%","selector":{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}}}`},
	{gvk("rbac.authorization.k8s.io", "v1", "ClusterRole"), `{"metadata":{"name":"r"},"rules":[{"verbs":["*"],"nonResourceURLs":["*"]},{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`},
	{gvk("rbac.authorization.k8s.io", "v1", "Role"), `{"metadata":{"name":"r"}}`},
	{gvk("resource.k8s.io", "v1", "ResourceSlice"), `{"spec":{"driver":"d","pool":{"name":"p","generation":1,"resourceSliceCount":1},"nodeName":"n","devices":[{"name":"g0","attributes":{"a":{"bool":false},"i":{"int":0},"s":{"string":""}},"capacity":{"memory":{"value":"1Gi"}}}]}}`},
	{gvk("scheduling.k8s.io", "v1", "PriorityClass"), `{"metadata":{"name":"p"},"value":-10}`},
	{gvk("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"), `{"webhooks":[{"name":"w","clientConfig":{"caBundle":"Zm9v"},"rules":[{"operations":["CREATE"],"apiGroups":["*"],"scope":"*"}],"sideEffects":"None","admissionReviewVersions":["v1"]}]}`},
	{gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), `{"metadata":{"name":"foos.example.com"},"spec":{"group":"example.com","names":{"plural":"foos","kind":"Foo"},"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","default":{"a":1},"minimum":0.5,"maximum":10,"multipleOf":1e21,"enum":["a",1,null],"items":{"type":"string"},"additionalProperties":true,"additionalItems":false,"x-kubernetes-preserve-unknown-fields":true},"list":{"items":[{"type":"string"},{}]},"map":{"additionalProperties":{"type":"integer"},"dependencies":{"a":["b"],"c":{"type":"string"}}}}}}}]}}`},
}

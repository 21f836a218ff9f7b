Feature: Reconcile Kubernetes resources for configuration auditing

  These scenarios are applicable to ConfigAuditReports and ClusterConfigAuditReports.
  The only difference is the scope of the resource, i.e. namespace vs cluster.

  Scenario: Scan a K8s resource when there are applicable Rego policies

    Given a set of Rego policies applicable to ConfigMaps
    When a ConfigMap is discovered by the operator
    And there is no ConfigAuditReport associated with the ConfigMap
    Then the operator scans the ConfigMap
    And eventually, there is the ConfigAuditReport associated with the ConfigMap

  Scenario: Skip scanning a K8s resource when there are no applicable Rego policies

    Given a set of Rego policies not applicable to ConfigMaps
    When a ConfigMap is discovered by the operator
    And there is no ConfigAuditReport associated with the ConfigMap
    Then operator requeues (with delay) the reconciliation key for the ConfigMap

  Scenario: Delete (stale) ConfigAuditReport when applicable Rego policies are removed

    Given a set of Rego policies applicable to ConfigMaps
    And the ConfigAuditReport associated with a ConfigMap
    When Rego policies for ConfigMaps are removed
    Then operator deletes the ConfigAuditReport
    And the operator requeues (without delay) the reconciliation key for the ConfigMap

  Scenario: Rescan a K8s resource when applicable Rego policies are updated

    Given a set of Rego policies applicable to K8s workloads and ConfigMaps
    When Rego code applicable to ConfigMaps has changed
    Then operator deletes ConfigAuditReports associated with ConfigMaps
    But ConfigAuditReports associated with K8s resources other than ConfigMaps are left intact

  Scenario: Rescan all K8s resources when Rego helper functions have changed

    Given a set of Rego policies applicable to K8s workloads, ConfigMaps, and Services
    When Rego code of helper functions have changed
    Then the operator deletes all ConfigAuditReports

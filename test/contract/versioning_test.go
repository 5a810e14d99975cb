package contract

import (
	"net/http"
	"strings"
	"testing"

	"hubcloud/test/harness"
)

// versioning tests "Versioning".
func versioning(t *testing.T, c *harness.Target) {
	// "The version is the path prefix /v1, part of {base_url}."
	tenant := c.Tenant("Versioning")
	for _, prefix := range []string{"", "/v2", "/v0", "/V1"} {
		elsewhere := harness.NewClient(t, c.Public+prefix, tenant.Key)
		elsewhere.Rejected(http.MethodGet, "/sites", nil, http.StatusNotFound, "not_found")
	}
	// "The current release of the contract is 1.0.0": the API description has this version. It is
	// public.
	description := harness.Open(t, http.MethodGet, c.Base+"/openapi.yaml")
	if description.Status != http.StatusOK ||
		!strings.Contains(string(description.Body), "version: 1.0.0") {
		t.Errorf(
			"API description: got %d %.200s, want version 1.0.0", description.Status,
			description.Body,
		)
	}
	// The API description has every endpoint of the contract.
	for _, e := range endpoints {
		if !strings.Contains(string(description.Body), e.path+":") {
			t.Errorf("API description: %s is missing", e)
		}
	}
}

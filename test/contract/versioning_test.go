package contract

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hubcloud/test/harness"
)

// versioning tests "Versioning".
func versioning(t *testing.T, c *harness.Target) {
	// "The version is the path prefix /v1, part of {base_url}."
	tenant := c.Tenant("Versioning")
	for _, prefix := range []string{"", "/v2", "/v0", "/V1"} {
		elsewhere := harness.NewClient(t, c.Public+prefix, tenant.Key)
		elsewhere.Rejected(http.MethodGet, "/sites", nil, "not_found")
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
	var document struct {
		Components struct {
			Schemas map[string]struct{ Required []string }
		}
	}
	harness.Must(t, yaml.Unmarshal(description.Body, &document))
	for schema, fields := range contractFields {
		want := strings.Fields(fields)
		got := document.Components.Schemas[schema].Required
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("API description: %s has the fields %v, want %v", schema, got, want)
		}
	}
}

// contractFields has the fields of each object of the contract, with those that the design adds, by
// schema of openapi.yaml. The client checks that every answer has what openapi.yaml describes.
var contractFields = map[string]string{
	"Site":              "id name hub_count created_at",
	"Hub":               "id name site_id connection firmware network registered_at",
	"HubConnection":     "status since public_ip disconnect_reason",
	"HubItem":           "id name site_id connection registered_at",
	"HubItemConnection": "status since",
	"Firmware":          "version",
	"Network": "type interface ip_address ipv6_address mac_address ssid signal_dbm carrier radio " +
		"metered reported_at",
	"DeviceItem":  "id name manufacturer model room channels",
	"Device":      "id name manufacturer model room channels",
	"DeviceLabel": "id name room",
	"ChannelItem": "key endpoint kind unit readable writable capabilities available",
	"Channel": "key endpoint kind unit readable writable capabilities available value observed_at " +
		"desired desired_at status",
	"CommandedChannel": "key endpoint kind unit value observed_at desired desired_at status available",
	"AcceptedCommand":  "hub_id device_id channel",
	"Window":           "status expires_in",
	"OtherEvent":       "cursor type hub_id device_id time clock_trusted data",
	"EventPage":        "data next_cursor has_more",
	"Member":           "id email role access joined_at",
	"Invitation":       "id email role access status created_at expires_at",
	"SiteList":         "data has_more",
	"HubList":          "data has_more",
	"DeviceList":       "data",
	"MemberList":       "data has_more",
	"InvitationList":   "data has_more",
}

package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// there builds paths of things that the organization of startReal has.
var there = strings.NewReplacer(
	"{site_id}", siteOne, "{hub_id}", string(hubOne), "{device_id}", "2", "{slot}", "4",
	"{member_id}", memberAdmin, "{invitation_id}", invitationOne,
	"{webhook_id}", webhookOne,
)

// requestBodies holds bodies with every field that startReal's service accepts, by the name of
// their schema.
var requestBodies = map[string]string{
	"":           "",
	"SiteChange": `{"name":"Mill"}`,
	"HubAddition": `{"serial":"HUB-7K2M-Q4XD-93TA","site_id":"` + siteOne + `",` +
		`"name":"Basement"}`,
	"HubChange":      `{"name":"Lobby","site_id":"` + siteOne + `"}`,
	"DeviceChange":   `{"name":"Front door","room":"Hall"}`,
	"PairingRequest": `{"setup_code":"34512"}`,
	"Command":        `{"key":"lock","value":true,"endpoint":0}`,
	"CommandBatch": `{"key":"lock","value":true,"channels":[{"hub_id":"` + string(hubOne) +
		`","device_id":2}],"select":{"site_id":"` + siteOne + `"}}`,
	"NewCredential": `{"slot":4,"label":"Cleaner","code":"4711","valid_from":"2099-01-05T08:00:00Z","valid_until":"2099-01-12T18:00:00Z",` +
		`"time_zone":"Europe/Berlin","schedule":[{"days":["mon"],"from":"08:00","until":"17:00"}]}`,
	"CredentialChange": `{"label":"Cleaner","code":"4711","valid_from":"2099-01-05T08:00:00Z","valid_until":"2099-01-12T18:00:00Z",` +
		`"time_zone":"Europe/Berlin","schedule":[{"days":["mon"],"from":"08:00","until":"17:00"}]}`,
	"CredentialBatch": `{"label":"Cleaner","code":"4711","valid_from":"2099-01-05T08:00:00Z","valid_until":"2099-01-12T18:00:00Z",` +
		`"time_zone":"Europe/Berlin","schedule":[{"days":["mon"],"from":"08:00","until":"17:00"}],"channels":[{"hub_id":"` + string(hubOne) +
		`","device_id":2}],"select":{"site_id":"` + siteOne + `"}}`,
	"RoleChange":        `{"role":"member","access":"viewer"}`,
	"InvitationRequest": `{"email":"grace@example.com","role":"admin","access":"admin"}`,
	"WebhookRequest": `{"url":"http://127.0.0.1:1/","name":"Mine","filter":{"hub_id":["` +
		string(hubOne) + `"],"site_id":["` + siteOne + `"],"type":["hub.*"]}}`,
	"WebhookChange":      `{"url":"http://127.0.0.1:1/","name":"Mine","filter":{},"enabled":true}`,
	"WebhookReplay":      `{"after":"c1","since":"2026-01-02T03:04:05Z"}`,
	"WebhookRotation":    `{"overlap_seconds":60}`,
	"CertificateRequest": `{"serial":"HUB-7K2M-Q4XD-93TA","secret":"right","csr":"x"}`,
}

// The document and the routes have the same request fields, required by both or by neither, and the
// routes accept the document's examples.
func TestRequestsAreDescribed(t *testing.T) {
	t.Parallel()
	d := described(t)
	s := startReal(t, nil)
	for _, op := range d.operations {
		if op.body == "" {
			continue
		}
		path, schema := there.Replace(op.pattern), d.schema(op.body)
		fields, required := schema.get("properties").keys(), schema.get("required").texts()
		var whole map[string]json.RawMessage
		if err := json.Unmarshal([]byte(requestBodies[op.body]), &whole); err != nil ||
			len(whole) != len(fields) {
			t.Fatalf("%v: got example %s, %v, want every field", op, requestBodies[op.body], err)
		}
		unknown := s.do(op.method, path, `{"unheard_of":1}`)
		if op.body != "CertificateRequest" { // hubs may say more than we know
			message := wantError(t, unknown, 400, domain.CodeInvalidRequest)
			_, allowed, _ := strings.Cut(message, "allowed fields are ")
			if got := slices.Sorted(strings.SplitSeq(allowed, ", ")); !slices.Equal(got, fields) {
				t.Errorf("%v: got message %q, want the fields %v", op, message, fields)
			}
		}
		for _, field := range fields {
			partial := map[string]json.RawMessage{}
			for name, value := range whole {
				if name != field {
					partial[name] = value
				}
			}
			body, err := json.Marshal(partial)
			streamstest.Must(t, err)
			a := s.do(op.method, path, string(body))
			missed := a.StatusCode == 400 && strings.Contains(a.body, field+": is required")
			if missed != slices.Contains(required, field) {
				t.Errorf(
					"%v without %s: described as required: %t, got %d %s, want agreement", op,
					field, !missed, a.StatusCode, a.body,
				)
			}
		}
		if a := s.do(op.method, path, ""); (a.StatusCode != 400) != op.bodyOptional {
			t.Errorf(
				"%v without a body: described as optional: %t, got %d %s, want agreement", op,
				op.bodyOptional, a.StatusCode, a.body,
			)
		}
		for _, example := range op.examples {
			body, err := json.Marshal(example)
			streamstest.Must(t, err)
			if a := s.do(op.method, path, string(body)); a.StatusCode == 400 {
				t.Errorf("%v: example %s: got %s, want no rejection", op, body, a.body)
			}
		}
	}
}

// A route rejects repeated known parameters, apart from filters of events, and ignores unknown
// ones.
func TestParametersAreDescribed(t *testing.T) {
	t.Parallel()
	d := described(t)
	s := startReal(t, nil)
	s.drain() // nothing waits
	var queries []string
	for _, op := range d.operations {
		queries = append(queries, op.query...)
	}
	for _, op := range d.operations {
		path := there.Replace(op.pattern)
		for _, name := range queries {
			a := s.do(op.method, path+"?"+name+"=1&"+name+"=1", requestBodies[op.body])
			known := strings.Contains(a.body, name+": must be given once")
			repeatable := (strings.HasPrefix(op.pattern, "/v1/events") ||
				strings.HasPrefix(op.pattern, "/v1/audit")) &&
				slices.Contains([]string{"site_id", "hub_id", "type"}, name)
			if known != (slices.Contains(op.query, name) && !repeatable) {
				t.Errorf(
					"%v: described %v, but got for %s twice %d %s, want agreement", op, op.query,
					name, a.StatusCode, a.body,
				)
			}
		}
		for _, name := range []string{"Idempotency-Key", "Last-Event-ID"} {
			answered := s.do(op.method, path, requestBodies[op.body], name, "1", name, "1").body
			known := strings.Contains(answered, name+": must be given once")
			if known != slices.Contains(op.header, name) {
				t.Errorf(
					"%v: described %v, but got for %s twice %s, want agreement", op, op.header,
					name, answered,
				)
			}
		}
	}
}

package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/httpapi/apierror"
	"hubcloud/httpapi/openapitest"
	"hubcloud/hubbridge/protocol"
)

// there and notThere build paths and bodies of things that the organization of startReal has and
// does not have.
var (
	there = strings.NewReplacer(
		"{site_id}", siteOne, "{hub_id}", string(hubOne), "{device_id}", "2",
		"{member_id}", memberAdmin, "{invitation_id}", invitationOne,
	)
	notThere = strings.NewReplacer(
		"{site_id}", nowhere, "{hub_id}", string(hubNone), "{device_id}", "99", "{member_id}",
		nowhere, "{invitation_id}", nowhere, siteOne, nowhere,
	)
)

// requestBodies holds bodies with every field that startReal's service accepts, by the name of
// their schema.
var requestBodies = map[string]string{
	"":           "",
	"SiteChange": `{"name":"Mill"}`,
	"HubAddition": `{"serial":"HUB-7K2M-Q4XD-93TA","site_id":"` + siteOne + `",` +
		`"name":"Basement"}`,
	"HubChange":          `{"name":"Lobby","site_id":"` + siteOne + `"}`,
	"DeviceChange":       `{"name":"Front door","room":"Hall"}`,
	"PairingRequest":     `{"setup_code":"34512"}`,
	"Command":            `{"key":"lock","value":true,"endpoint":0}`,
	"RoleChange":         `{"role":"member"}`,
	"InvitationRequest":  `{"email":"grace@example.com","role":"admin"}`,
	"CertificateRequest": `{"serial":"HUB-7K2M-Q4XD-93TA","secret":"right","csr":"x"}`,
}

// Each answer that openapi.yaml describes, by operation, status and error type, is produced and
// checked against the document, including the order of its fields. A described answer that no route
// can give fails here.
func TestAnswersAreDescribed(t *testing.T) {
	t.Parallel()
	d, routes := described(t), describable(t)
	real := startReal(t, nil)
	for _, op := range d.Operations {
		for _, status := range op.Statuses() {
			types := op.Types(status)
			if len(types) == 0 {
				types = []string{""}
			}
			for _, code := range types {
				t.Run(fmt.Sprint(op, " ", status, " ", code), func(t *testing.T) {
					a := bringAbout(t, real, op, routes[op.String()], status, domain.Code(code))
					var body apierror.Body
					if err := json.Unmarshal([]byte(a.body), &body); code != "" &&
						op.Method != http.MethodHead &&
						(err != nil || string(body.Error.Type) != code) {
						t.Errorf("got answer %s, want type %s", a.body, code)
					}
					if a.StatusCode != status {
						t.Fatalf("got answer %d %s, want %d", a.StatusCode, a.body, status)
					}
					path := a.Request.URL.EscapedPath()
					err := d.Check(op.Method, path, status, a.Header, []byte(a.body))
					if err != nil {
						t.Error(err)
					}
					if schema := op.Schema(status); schema != "" && a.body != "" {
						if err := d.CheckOrder(schema, []byte(a.body)); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
	}
}

// bringAbout sends a request that should get the answer. Code is "" if the answer is not an error.
// It uses the service real, or a service of its own for faults that real parts cannot show.
func bringAbout(
	t *testing.T, real *service, op *openapitest.Operation, rt *route, status int, code domain.Code,
) answer {
	t.Helper()
	path, body := op.Pattern, requestBodies[op.Body]
	s, headers := real, []string{}
	switch code {
	case "":
		switch {
		case status == http.StatusServiceUnavailable || strings.HasSuffix(path, "/stream"):
			s = start(t, nil)
			s.drain()
		case strings.HasSuffix(path, "/events"):
			s = start(t, nil) // its log is empty: the real service's has events after List
		case status == http.StatusNotModified:
			headers = []string{"If-None-Match", s.do(op.Method, path, body).Header.Get("ETag")}
		case op.Method == http.MethodDelete:
			s = startReal(t, nil)
		}
	case domain.CodeInvalidRequest:
		body = strings.Repeat(" ", maxBody+1)
	case domain.CodeNotFound:
		path, body = notThere.Replace(path), notThere.Replace(body)
	case domain.CodeForbidden:
		path = strings.Replace(path, "{member_id}", memberOwner, 1)
		body = strings.Replace(body, `"admin"`, `"owner"`, 1)
	case domain.CodeHubNotAddable:
		body = strings.Replace(body, "HUB-7K2M-Q4XD-93TA", string(hubNone), 1)
	case domain.CodeInsufficientScope:
		s = start(t, nil)
		bearer, _ := s.addKey(orgOne, 9)
		headers = []string{"Authorization", bearer}
	case domain.CodeRateLimited:
		s = start(t, func(c *Config) { c.Rate, c.Burst = 0.001, 1 })
		s.do(op.Method, there.Replace(path), strings.Repeat(" ", maxBody+1))
	case domain.CodeInternal:
		s = start(t, func(c *Config) { // a route that calls any port panics
			c.ReadModels, c.Directory, c.Devices, c.Commands = nil, nil, nil, nil
			c.Events, c.OrgEvents, c.FeedReaders, c.Enrolment = nil, nil, nil, nil
			c.Ready = func(context.Context) []Component { panic("no components") }
		})
	default:
		if code == domain.CodeIdempotencyConflict && !rt.asksHub {
			headers = []string{"Idempotency-Key", rand.Text()}
			s.do(op.Method, path, strings.Replace(body, `"name":"`, `"name":"Old `, 1), headers...)
			body = strings.Replace(body, `"role":"admin"`, `"role":"member"`, 1)
			break
		}
		view := newReplicaView()
		s = start(t, func(c *Config) { c.Freshness = view })
		switch fault := domain.Errorf(code, "because"); {
		case code == domain.CodeUnauthenticated && rt.access == forKey:
			headers = []string{"Authorization", ""}
		case code == domain.CodeServiceUnavailable && rt.access == forKey:
			view.lose()
		case rt.asksHub:
			s.hub.fault = fault
		default: // of event logs and enrolment
			s.fault = fault
		}
	}
	return s.do(op.Method, there.Replace(path), body, headers...)
}

func namesOf(fields []openapitest.Field) []string {
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// The document and the routes have the same request fields, required by both or by neither, and the
// routes accept the document's examples.
func TestRequestsAreDescribed(t *testing.T) {
	t.Parallel()
	d := described(t)
	s := startReal(t, nil)
	for _, op := range d.Operations {
		if op.Body == "" {
			continue
		}
		path, fields := there.Replace(op.Pattern), d.Object(op.Body)
		var whole map[string]json.RawMessage
		if err := json.Unmarshal([]byte(requestBodies[op.Body]), &whole); err != nil ||
			len(whole) != len(fields) {
			t.Fatalf("%v: got example %s, %v, want every field", op, requestBodies[op.Body], err)
		}
		unknown := s.do(op.Method, path, `{"unheard_of":1}`)
		if op.Body == "CertificateRequest" { // hubs may say more than we know
			sent := namesOf(fieldsOf(reflect.TypeFor[protocol.CertificateRequest]()))
			if !slices.Equal(namesOf(fields), sent) {
				t.Errorf("%v: described %v, want what hubs send, %v", op, namesOf(fields), sent)
			}
		} else {
			want := "allowed fields are " + strings.Join(namesOf(fields), ", ")
			message := wantError(t, unknown, 400, domain.CodeInvalidRequest)
			if !strings.HasSuffix(message, want) {
				t.Errorf("%v: got message %q, want suffix %q", op, message, want)
			}
		}
		for _, field := range fields {
			partial := map[string]json.RawMessage{}
			for name, value := range whole {
				if name != field.Name {
					partial[name] = value
				}
			}
			body, err := json.Marshal(partial)
			if err != nil {
				t.Fatal(err)
			}
			a := s.do(op.Method, path, string(body))
			missed := a.StatusCode == 400 && strings.Contains(a.body, field.Name+": is required")
			if missed != field.Required {
				t.Errorf(
					"%v without %s: described as required: %t, got %d %s, want agreement", op,
					field.Name, field.Required, a.StatusCode, a.body,
				)
			}
		}
		if a := s.do(op.Method, path, ""); (a.StatusCode != 400) != op.BodyOptional {
			t.Errorf(
				"%v without a body: described as optional: %t, got %d %s, want agreement", op,
				op.BodyOptional, a.StatusCode, a.body,
			)
		}
		for _, example := range op.BodyExamples {
			body, err := json.Marshal(example)
			if err != nil {
				t.Fatal(err)
			}
			if a := s.do(op.Method, path, string(body)); a.StatusCode == 400 {
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
	for _, op := range d.Operations {
		queries = append(queries, op.Query...)
	}
	for _, op := range d.Operations {
		path := there.Replace(op.Pattern)
		for _, name := range queries {
			a := s.do(op.Method, path+"?"+name+"=1&"+name+"=1", requestBodies[op.Body])
			known := strings.Contains(a.body, name+": must be given once")
			repeatable := strings.HasPrefix(op.Pattern, "/v1/events") &&
				slices.Contains([]string{"site_id", "hub_id", "type"}, name)
			if known != (slices.Contains(op.Query, name) && !repeatable) {
				t.Errorf(
					"%v: described %v, but got for %s twice %d %s, want agreement", op, op.Query,
					name, a.StatusCode, a.body,
				)
			}
		}
		for _, name := range []string{"Idempotency-Key", "Last-Event-ID"} {
			answered := askTwice(t, s, op.Method, path, requestBodies[op.Body], name)
			known := strings.Contains(answered, name+": must be given once")
			if known != slices.Contains(op.Header, name) {
				t.Errorf(
					"%v: described %v, but got for %s twice %s, want agreement", op, op.Header,
					name, answered,
				)
			}
		}
	}
}

// askTwice sends a header field twice and returns the answer's body.
func askTwice(t *testing.T, s *service, method, path, body, header string) string {
	t.Helper()
	req, err := http.NewRequest(
		method, s.base+s.ids.Replace(path), strings.NewReader(s.ids.Replace(body)),
	)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{
		"Authorization": {s.bearer},
		"Content-Type":  {"application/json"},
		header:          {"1", "1"},
	}
	res, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

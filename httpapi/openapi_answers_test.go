package httpapi

import (
	"context"
	"encoding/json"
	"errors"
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

// there and notThere build paths and bodies of things that the world has and does not have.
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

// requestBodies holds bodies with every field that the world accepts, by the name of their schema.
var requestBodies = map[string]string{
	"":                   "",
	"SiteChange":         `{"name":"Mill"}`,
	"HubAddition":        `{"serial":"HUB-7K2M-Q4XD-93TA","site_id":"` + siteOne + `","name":"Basement"}`,
	"HubChange":          `{"name":"Lobby","site_id":"` + siteOne + `"}`,
	"DeviceChange":       `{"name":"Front door","room":"Hall"}`,
	"PairingRequest":     `{"setup_code":"34512"}`,
	"Command":            `{"key":"lock","value":true,"endpoint":0}`,
	"RoleChange":         `{"role":"member"}`,
	"InvitationRequest":  `{"email":"grace@example.com","role":"admin"}`,
	"CertificateRequest": `{"serial":"HUB-7K2M-Q4XD-93TA","secret":"right","csr":"x"}`,
}

// faulty is a world whose faults reach also the routes that world answers without an error.
type faulty struct{ *world }

func (w faulty) Follow(ctx context.Context, hub domain.HubID, after string) (EventReader, error) {
	if w.fault != nil {
		return nil, w.fault
	}
	return w.world.Follow(ctx, hub, after)
}

func (w faulty) Issue(context.Context, protocol.CertificateRequest) (protocol.Certificate, error) {
	return protocol.Certificate{
		HubID: string(hubOne), Certificate: "x", CA: "x", Broker: "mqtts://127.0.0.1:8883",
		ExpiresAt: domain.FormatTime(day),
	}, w.fault
}

// startFaulty is start with the faulty world.
func startFaulty(t *testing.T, change func(*Config)) *service {
	t.Helper()
	return start(t, func(c *Config) {
		w := c.Events.(*world)
		c.Events, c.Enrolment = faulty{w}, faulty{w}
		if change != nil {
			change(c)
		}
	})
}

// Each answer that openapi.yaml describes, by operation, status and error type, is produced and
// checked against the document, including the order of its fields. A described answer that no route
// can give fails here.
func TestAnswersAreDescribed(t *testing.T) {
	t.Parallel()
	d, routes := described(t), describable(t)
	for _, op := range d.Operations {
		for _, status := range op.Statuses() {
			types := op.Types(status)
			if len(types) == 0 {
				types = []string{""}
			}
			for _, code := range types {
				t.Run(fmt.Sprint(op, " ", status, " ", code), func(t *testing.T) {
					a := bringAbout(t, op, routes[op.String()], status, domain.Code(code))
					var body apierror.Body
					if err := json.Unmarshal([]byte(a.body), &body); code != "" &&
						op.Method != http.MethodHead &&
						(err != nil || string(body.Error.Type) != code) {
						t.Errorf("answered with %s", a.body)
					}
					if a.StatusCode != status {
						t.Fatalf("answered with %d: %s", a.StatusCode, a.body)
					}
					path := a.Request.URL.EscapedPath()
					if err := d.Check(op.Method, path, status, a.Header, []byte(a.body)); err != nil {
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
func bringAbout(
	t *testing.T, op *openapitest.Operation, rt *route, status int, code domain.Code,
) answer {
	t.Helper()
	s := startFaulty(t, func(c *Config) {
		switch {
		case code == domain.CodeRateLimited:
			c.Rate, c.Burst = 0.001, 1
		case code == domain.CodeInternal:
			c.Ready = func(context.Context) []Component { panic("no parts") }
		}
	})
	if strings.HasSuffix(op.Pattern, "/stream") ||
		code == "" && status == http.StatusServiceUnavailable {
		s.drain()
	}
	path, body, headers := op.Pattern, requestBodies[op.Body], []string{}
	switch {
	case code == "" && status == http.StatusNotModified:
		headers = []string{"If-None-Match", s.do(op.Method, path, body).Header.Get("ETag")}
	case code == "":
	case code == domain.CodeInvalidRequest:
		body = strings.Repeat(" ", maxBody+1)
	case code == domain.CodeUnauthenticated && rt.access == forKey:
		headers = []string{"Authorization", ""}
	case code == domain.CodeInsufficientScope:
		bearer, _ := s.addKey(orgOne, 9)
		headers = []string{"Authorization", bearer}
	case code == domain.CodeRateLimited:
		s.do(op.Method, there.Replace(path), body)
	case code == domain.CodeNotFound:
		path, body = notThere.Replace(path), notThere.Replace(body)
	default:
		fault := error(domain.Errorf(code, "because"))
		if code == domain.CodeInternal {
			fault = errors.New("because")
		}
		if s.fault = fault; rt.asksHub {
			s.fault, s.hub.fault = nil, fault
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
	s := startFaulty(t, nil)
	for _, op := range d.Operations {
		if op.Body == "" {
			continue
		}
		path, fields := there.Replace(op.Pattern), d.Object(op.Body)
		var whole map[string]json.RawMessage
		if err := json.Unmarshal([]byte(requestBodies[op.Body]), &whole); err != nil ||
			len(whole) != len(fields) {
			t.Fatalf("%v: %s has not every field: %v", op, requestBodies[op.Body], err)
		}
		unknown := s.do(op.Method, path, `{"unheard_of":1}`)
		if op.Body == "CertificateRequest" { // hubs may say more than we know
			if sent := namesOf(fieldsOf(reflect.TypeFor[protocol.CertificateRequest]())); !slices.Equal(
				namesOf(fields), sent,
			) {
				t.Errorf("%v: described are %v; hubs send %v", op, namesOf(fields), sent)
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
					"%v without %s: described as required: %t; answered with %d %s", op, field.Name,
					field.Required, a.StatusCode, a.body,
				)
			}
		}
		if a := s.do(op.Method, path, ""); (a.StatusCode != 400) != op.BodyOptional {
			t.Errorf(
				"%v without a body: described as optional: %t; answered with %d %s", op,
				op.BodyOptional, a.StatusCode, a.body,
			)
		}
		for _, example := range op.BodyExamples {
			body, err := json.Marshal(example)
			if err != nil {
				t.Fatal(err)
			}
			if a := s.do(op.Method, path, string(body)); a.StatusCode == 400 {
				t.Errorf("%v rejects the example %s: %s", op, body, a.body)
			}
		}
	}
}

// A route rejects repeated known parameters and ignores unknown ones.
func TestParametersAreDescribed(t *testing.T) {
	t.Parallel()
	d := described(t)
	s := startFaulty(t, nil)
	s.drain() // nothing waits
	var queries []string
	for _, op := range d.Operations {
		queries = append(queries, op.Query...)
	}
	for _, op := range d.Operations {
		path := there.Replace(op.Pattern)
		for _, name := range queries {
			a := s.do(op.Method, path+"?"+name+"=1&"+name+"=1", requestBodies[op.Body])
			if known := strings.Contains(a.body, name+": must be given once"); known != slices.Contains(
				op.Query, name,
			) {
				t.Errorf(
					"%v: described are %v; %s twice is answered with %d %s", op, op.Query, name,
					a.StatusCode, a.body,
				)
			}
		}
		for _, name := range []string{"Idempotency-Key", "Last-Event-ID"} {
			answered := askTwice(t, s, op.Method, path, requestBodies[op.Body], name)
			if known := strings.Contains(answered, name+": must be given once"); known != slices.Contains(
				op.Header, name,
			) {
				t.Errorf(
					"%v: described are %v; %s twice is answered with %s", op, op.Header, name,
					answered,
				)
			}
		}
	}
}

// askTwice sends a header field twice and returns the answer's body.
func askTwice(t *testing.T, s *service, method, path, body, header string) string {
	t.Helper()
	req, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
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

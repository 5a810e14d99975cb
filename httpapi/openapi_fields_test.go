package httpapi

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/httpapi/apierror"
	"hubcloud/httpapi/openapitest"
	"hubcloud/hubbridge/protocol"
)

// bodies holds the types of JSON bodies, by the name of their schema.
var bodies = map[string]any{
	"Error":             apierror.Body{},
	"Site":              siteBody{},
	"SiteList":          listBody[siteBody]{},
	"Hub":               hubBody{},
	"HubConnection":     hubConnection{},
	"Firmware":          protocol.Firmware{},
	"Network":           reportedNetwork{},
	"HubItem":           hubItem{},
	"HubItemConnection": itemConnection{},
	"HubList":           listBody[hubItem]{},
	"DeviceItem":        deviceBody[listedChannel]{},
	"ChannelItem":       listedChannel{},
	"Device":            deviceBody[fullChannel]{},
	"Channel":           fullChannel{},
	"StateList":         listBody[stateBody]{},
	"State":             stateBody{},
	"StateDevice":       stateDevice{},
	"EventReader":       readerBody{},
	"ReaderList":        listBody[readerBody]{},
	"PastState":         pastStateBody{},
	"PastChannel":       pastChannelBody{},
	"DeviceLabel":       labelBody{},
	"Window":            windowBody{},
	"AcceptedCommand":   commandBody{},
	"CommandedChannel":  commandedChannel{},
	"OtherEvent":        event{},
	"Member":            memberBody{},
	"MemberList":        listBody[memberBody]{},
	"Invitation":        invitationBody{},
	"InvitationList":    listBody[invitationBody]{},
	"Certificate":       protocol.Certificate{},
	"Readiness":         readinessBody{},
}

// reportedNetwork is the network of a hello with the fields that the hub bridge adds.
type reportedNetwork struct {
	protocol.Network
	ReportedAt string `json:"reported_at"`
}

// event is a stored event with its cursor.
type event struct {
	Cursor string `json:"cursor"`
	domain.HubEvent
}

// elsewhere holds the object schemas without a type in this package, and the tests that check them.
var elsewhere = map[string]string{
	"EventPage":           "written by hand: the contract suite",
	"FeedPage":            "written by hand: the contract suite",
	"FeedGapData":         "written by package orgfeed: the contract suite",
	"DeviceList":          "has no type of its own: the contract suite",
	"Health":              "has no type of its own: the contract suite",
	"Color":               "a value, passed on as the hub sends it",
	"Alarm":               "a value, passed on as the hub sends it",
	"Scene":               "a value, passed on as the hub sends it",
	"DisconnectedData":    "data, passed on as it is stored",
	"SkippedData":         "data, passed on as it is stored",
	"LogResetData":        "data, passed on as it is stored",
	"ChannelData":         "data, passed on as it is stored",
	"DeviceData":          "data, passed on as it is stored",
	"DeviceAddedData":     "data, passed on as it is stored",
	"DeviceUpdatedData":   "data, passed on as it is stored",
	"JoinFailedData":      "data, passed on as it is stored",
	"ChannelStatusData":   "data, passed on as it is stored",
	"CredentialData":      "data, passed on as it is stored",
	"CredentialStateData": "data, passed on as it is stored",
	"RuleData":            "data, passed on as it is stored",
	"SiteChange":          "a request: TestRequestsAreDescribed",
	"HubAddition":         "a request: TestRequestsAreDescribed",
	"HubChange":           "a request: TestRequestsAreDescribed",
	"DeviceChange":        "a request: TestRequestsAreDescribed",
	"PairingRequest":      "a request: TestRequestsAreDescribed",
	"Command":             "a request: TestRequestsAreDescribed",
	"RoleChange":          "a request: TestRequestsAreDescribed",
	"InvitationRequest":   "a request: TestRequestsAreDescribed",
	"CertificateRequest":  "a request: TestRequestsAreDescribed",
}

// The types and the schemas of answers have the same fields, in the same order, with the same JSON
// types.
func TestFieldsAreDescribed(t *testing.T) {
	t.Parallel()
	d := described(t)
	for name, body := range bodies {
		if got, want := d.Object(name), fieldsOf(reflect.TypeOf(body)); !sameFields(got, want) {
			t.Errorf("%s:\ndescribed %v\nanswered  %v", name, got, want)
		}
	}
	got, want := d.Object("Error", "error"), fieldsOf(reflect.TypeFor[apierror.Detail]())
	if !sameFields(got, want) {
		t.Errorf("Error.error:\ndescribed %v\nanswered  %v", got, want)
	}
	for _, name := range d.Objects() {
		if strings.HasSuffix(name, "Event") && name != "OtherEvent" {
			if got, want := d.Object(name), d.Object("OtherEvent"); !sameNames(got, want) {
				t.Errorf("%s: described %v, want the fields of every event: %v", name, got, want)
			}
			continue
		}
		if _, answered := bodies[name]; answered == (elsewhere[name] != "") {
			t.Errorf("%s: described and compared with no or two structures, want one", name)
		}
	}
	for name := range elsewhere {
		if !slices.Contains(d.Objects(), name) {
			t.Errorf("%s: got no schema, want one", name)
		}
	}
}

// fieldsOf returns the JSON fields of a struct, with embedded ones in place. A field that can be
// any JSON has no types.
func fieldsOf(body reflect.Type) []openapitest.Field {
	var fields []openapitest.Field
	for i := range body.NumField() {
		f := body.Field(i)
		if f.Anonymous {
			fields = append(fields, fieldsOf(f.Type)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(
			fields,
			openapitest.Field{
				Name:     name,
				Required: !strings.Contains(options, "omit"),
				Types:    typesOf(f.Type),
			},
		)
	}
	return fields
}

func typesOf(t reflect.Type) []string {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return nil
	case t.Kind() == reflect.Pointer:
		return slices.Sorted(slices.Values(append(typesOf(t.Elem()), "null")))
	case t.Kind() == reflect.String:
		return []string{"string"}
	case t.Kind() == reflect.Bool:
		return []string{"boolean"}
	case t.Kind() == reflect.Slice:
		return []string{"array"}
	case t.Kind() == reflect.Struct:
		return []string{"object"}
	default:
		return []string{"integer"}
	}
}

func sameFields(described, answered []openapitest.Field) bool {
	return slices.EqualFunc(described, answered, func(d, a openapitest.Field) bool {
		return d.Name == a.Name && d.Required == a.Required &&
			(a.Types == nil || slices.Equal(d.Types, a.Types))
	})
}

func sameNames(one, other []openapitest.Field) bool {
	return slices.EqualFunc(one, other, func(a, b openapitest.Field) bool {
		return a.Name == b.Name && a.Required == b.Required
	})
}

// Every type of this package that is encoded as JSON is compared with a schema.
func TestBodiesAreCompared(t *testing.T) {
	t.Parallel()
	// The answers on the operators' port are not described. The contract suite checks Build
	// as a part of Health.
	compared := map[string]bool{
		"Build":            true,
		"apierror.Detail":  true,
		"readinessDetails": true,
		"Component":        true,
	}
	var note func(reflect.Type)
	note = func(body reflect.Type) {
		name, _, _ := strings.Cut(body.Name(), "[")
		compared[name] = true
		for i := range body.NumField() {
			if body.Field(i).Anonymous {
				note(body.Field(i).Type)
			}
		}
	}
	for _, body := range bodies {
		note(reflect.TypeOf(body))
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if body, ok := spec.Type.(*ast.StructType); ok && hasJSON(body) {
				found++
				if !compared[spec.Name.Name] {
					t.Errorf(
						"%s: marshaled as JSON and compared with no schema, want one",
						spec.Name.Name,
					)
				}
			}
			return true
		})
	}
	if found < 15 {
		t.Errorf("found %d structures, want at least 15", found)
	}
}

func hasJSON(body *ast.StructType) bool {
	return slices.ContainsFunc(body.Fields.List, func(f *ast.Field) bool {
		return f.Tag != nil && strings.Contains(f.Tag.Value, "json:")
	})
}

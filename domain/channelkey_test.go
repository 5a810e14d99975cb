package domain_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"hubcloud/domain"
)

var (
	flags    = []string{"lock", "barrier", "switch", "local_protection"}
	percents = []string{"level", "position"}
	degrees  = []string{"heating_setpoint", "cooling_setpoint"}
	modes    = []string{"mode", "fan_mode"}
	readOnly = []string{
		"operating_state", "fan_state", "temperature", "humidity", "luminance", "co2", "contact",
		"motion", "leak", "smoke", "co", "heat", "tamper",
		"battery", "energy", "power", "voltage", "current", "water", "gas", "alarm", "scene",
	}
)

func TestCommandValues(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("é", 200)
	for _, tc := range []struct {
		keys    []string
		valid   map[string]string // value to canonical form
		invalid []string
	}{
		{
			flags, map[string]string{`true`: `true`, `false`: `false`, " true\n": `true`},
			[]string{`1`, `0`, `"true"`, `null`, `[]`, `{}`, `True`},
		},
		{
			percents,
			map[string]string{
				`0`: `0`, `99`: `99`, `50.0`: `50`, `5e1`: `50`, `-0`: `0`, `0.0`: `0`,
			},
			[]string{`100`, `-1`, `50.5`, `"50"`, `true`, `null`, `1e400`, `99.00001`}},
		{
			degrees,
			map[string]string{
				`21`: `21`, `21.0`: `21`, `21.50`: `21.5`, `-5`: `-5`, `-0.0`: `0`,
				`2.15e1`: `21.5`,
			},
			[]string{`"21"`, `true`, `null`, `1e400`, `[21]`, `NaN`}},
		{
			modes,
			map[string]string{
				`"heat"`: `"heat"`, `"\u0068eat"`: `"heat"`, `"é"`: `"é"`, `"\u00e9"`: `"é"`,
				`"` + longest + `"`: `"` + longest + `"`,
			},
			[]string{
				`""`, `1`, `true`, `null`, `["heat"]`, `"a\nb"`, `"\ud800"`, `"` + longest + `x"`,
				"\"\xff\"",
			}},
		{[]string{"color"}, map[string]string{
			`{"red":1,"green":2,"blue":3}`:                   `{"red":1,"green":2,"blue":3}`,
			`{"blue":3.0,"red":1,"gr\u0065en":2e0}`:          `{"red":1,"green":2,"blue":3}`,
			`{"warm_white":0,"red":255,"green":0,"blue":-0}`: `{"red":255,"green":0,"blue":0,"warm_white":0}`,
		}, []string{
			`{"red":1,"green":2}`, `{}`, `{"red":256,"green":0,"blue":0}`,
			`{"red":-1,"green":0,"blue":0}`, `{"red":0.5,"green":0,"blue":0}`,
			`{"red":1,"green":2,"blue":3,"white":4}`,
			`{"red":1,"green":2,"blue":3,"warm_white":null}`,
			`{"red":1,"red":1,"green":2,"blue":3}`,
			`{"Red":1,"green":2,"blue":3}`, `[1,2,3]`, `"red"`, `null`,
			`{"red":1,"green":2,"blue":3}{}`, `{"red":1,"green":2,"blue":3`,
		}},
	} {
		for _, key := range tc.keys {
			for value, want := range tc.valid {
				if got, err := domain.CheckCommandValue(key, json.RawMessage(value)); err != nil ||
					string(got) != want {
					t.Errorf("%s of %s became %s, %v; want %s", value, key, got, err, want)
				}
			}
			for _, value := range append(tc.invalid, "", "x") {
				rejectedFor(t, "value: ", key, value, domain.CodeInvalidRequest)
			}
		}
	}
	for _, key := range readOnly {
		rejectedFor(t, "key: ", key, `true`, domain.CodeInvalidRequest)
	}
	for _, key := range []string{"", "toast", "Lock", "lock ", "lock\x00"} {
		rejectedFor(t, "", key, `true`, domain.CodeNotFound)
	}
}

func rejectedFor(t *testing.T, field, key, value string, code domain.Code) {
	t.Helper()
	got, err := domain.CheckCommandValue(key, json.RawMessage(value))
	if err == nil || domain.CodeOf(err) != code || !strings.Contains(err.Error(), field) || got != nil {
		t.Errorf("%s of %q: got %s, %v, want %s with %q", value, key, got, err, code, field)
	}
}

func decoded(t interface{ Fatal(...any) }, text string) (value any) {
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// FuzzCommandValue: the canonical form of an accepted value decodes to the same value, and its own
// canonical form is the same.
func FuzzCommandValue(f *testing.F) {
	for _, value := range []string{
		`true`, `21.50`, `-0`, `"heat"`, `{"red":1,"green":2,"blue":3.0,"warm_white":4}`,
		`{"red":1,"red":2}`, `"\ud800"`,
	} {
		for _, key := range []string{
			"lock", "level", "heating_setpoint", "mode", "color", "battery", "x",
		} {
			f.Add(key, []byte(value))
		}
	}
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		canonical, err := domain.CheckCommandValue(key, value)
		if err != nil {
			if code := domain.CodeOf(err); code != domain.CodeInvalidRequest && code != domain.CodeNotFound {
				t.Fatalf("%s of %q: %v", value, key, err)
			}
			return
		}
		again, err := domain.CheckCommandValue(key, canonical)
		if err != nil || string(again) != string(canonical) {
			t.Fatalf("%s of %q became %s, and that %s, %v", value, key, canonical, again, err)
		}
		got, want := decoded(t, string(canonical)), decoded(t, string(value))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s of %q became %s", value, key, canonical)
		}
		if n, ok := got.(float64); ok && (math.IsInf(n, 0) || math.IsNaN(n)) {
			t.Fatalf("%s of %q became %s", value, key, canonical)
		}
	})
}

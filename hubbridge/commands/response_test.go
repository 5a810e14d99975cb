package commands

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method, answer string
		want           domain.Code // "" for success
		message        string
	}{
		"a result":     {protocol.MethodDevicesGet, `{"id":"R","result":{"device":{"id":3}}}`, "", ""},
		"a null error": {protocol.MethodDevicesGet, `{"id":"R","result":{"device":{"id":3}},"error":null}`, "", ""},
		"unknown members": {
			protocol.MethodDevicesGet, `{"id":"R","result":{"device":{"id":3},"x":1},"took":5}`, "",
			"",
		},
		"not found": {
			protocol.MethodDevicesGet,
			`{"id":"R","error":{"type":"not_found","message":"no device 3"}}`, domain.CodeNotFound,
			"no device 3",
		},
		"unavailable, any method": {
			protocol.MethodRemovalClose,
			`{"id":"R","error":{"type":"hub_unavailable","message":"radio"}}`,
			domain.CodeHubUnavailable, "radio",
		},
		"command refused": {
			protocol.MethodChannelsCommand,
			`{"id":"R","error":{"type":"command_refused","message":"m"}}`,
			domain.CodeCommandRefused, "m",
		},
		"invalid request": {
			protocol.MethodPairingOpen,
			`{"id":"R","error":{"type":"invalid_request","message":"m"}}`,
			domain.CodeInvalidRequest, "m",
		},
		"still on the network": {
			protocol.MethodDevicesForget,
			`{"id":"R","error":{"type":"invalid_request","message":"m"}}`,
			domain.CodeInvalidRequest, "m",
		},
		"an error of another method": {
			protocol.MethodDevicesList, `{"id":"R","error":{"type":"not_found","message":"m"}}`,
			domain.CodeHubError, "m",
		},
		"an error of the API": {
			protocol.MethodDevicesGet,
			`{"id":"R","error":{"type":"unauthenticated","message":"m"}}`,
			domain.CodeHubError, "m",
		},
		"no message": {
			protocol.MethodDevicesGet, `{"id":"R","error":{"type":"not_found"}}`,
			domain.CodeNotFound,
			"gave no reason",
		},
		"a message with control characters": {
			protocol.MethodDevicesGet,
			`{"id":"R","error":{"type":"not_found","message":"a\u0000\n\u001b[31mb"}}`,
			domain.CodeNotFound, "a[31mb",
		},
		"a long message": {
			protocol.MethodDevicesGet,
			`{"id":"R","error":{"type":"not_found","message":"` + strings.Repeat("é", 200) + `"}}`,
			domain.CodeNotFound, strings.Repeat("é", maxMessageBytes/2),
		},
		"both": {
			protocol.MethodDevicesGet, `{"id":"R","result":{},"error":{"type":"not_found"}}`,
			domain.CodeHubError, "exactly one",
		},
		"neither":       {protocol.MethodDevicesGet, `{"id":"R"}`, domain.CodeHubError, "exactly one"},
		"a null result": {protocol.MethodPairingClose, `{"id":"R","result":null}`, domain.CodeHubError, "exactly one"},
		"a result that is a list": {
			protocol.MethodDevicesList, `{"id":"R","result":[]}`, domain.CodeHubError,
			"not an object",
		},
		"a result of another shape": {
			protocol.MethodDevicesGet, `{"id":"R","result":{"device":5}}`, domain.CodeHubError,
			"shape",
		},
		"an error that is a string": {
			protocol.MethodDevicesGet, `{"id":"R","error":"not_found"}`, domain.CodeHubError,
			"no type",
		},
		"an error without a type": {
			protocol.MethodDevicesGet, `{"id":"R","error":{"message":"m"}}`, domain.CodeHubError,
			"no type",
		},
		"a name in another case": {
			protocol.MethodDevicesGet, `{"id":"R","Result":{"device":{}}}`, domain.CodeHubError,
			"exactly one",
		},
		"the id of another request": {protocol.MethodDevicesGet, `{"id":"Q","result":{}}`, domain.CodeHubError, "id"},
		"no id":                     {protocol.MethodDevicesGet, `{"result":{}}`, domain.CodeHubError, "id"},
		"nothing":                   {protocol.MethodDevicesGet, ``, domain.CodeHubError, "not an object"},
		"no JSON":                   {protocol.MethodDevicesGet, `hello`, domain.CodeHubError, "not an object"},
		"too long": {
			protocol.MethodDevicesGet, strings.Repeat(" ", maxAnswerBytes+1), domain.CodeHubError, "bytes",
		},
		"something after the object": {
			protocol.MethodDevicesGet, `{"id":"R","result":{}} {}`, domain.CodeHubError, "not JSON",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var result struct{ Device struct{ ID int64 } }
			err := decode(tc.method, "R", []byte(tc.answer), func(raw []byte) error {
				if json.Unmarshal(raw, &result) != nil {
					return errors.New("a result of another shape")
				}
				return nil
			})
			if tc.want == "" {
				if err != nil || result.Device.ID != 3 {
					t.Errorf("got %+v, %v, want device 3", result, err)
				}
				return
			}
			var apiError *domain.Error
			if !errors.As(err, &apiError) || apiError.Code != tc.want ||
				!strings.Contains(apiError.Message, tc.message) || len(apiError.Message) > maxMessageBytes+100 {
				t.Errorf("got %v, want %s with %q", err, tc.want, tc.message)
			}
		})
	}
	empty := []byte(`{"id":"R","result":{}}`)
	if err := decode(protocol.MethodPairingClose, "R", empty, nil); err != nil {
		t.Errorf("decode without a reader: %v", err)
	}
	var raw string
	read := func(result []byte) error { raw = string(result); return nil }
	list := []byte(`{"id":"R","result":{"devices":[1.50]}}`)
	if err := decode(protocol.MethodDevicesList, "R", list, read); err != nil ||
		raw != `{"devices":[1.50]}` {
		t.Errorf("the reader got %s, %v, want the result as it is written", raw, err)
	}
}

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
	const get, failed, unknown = protocol.MethodDevicesGet, domain.CodeHubError, domain.CodeNotFound
	for _, tc := range []struct {
		name, method, answer string      // an answer that begins with a comma has the id before it
		want                 domain.Code // "" for success
		message              string
	}{
		{"a result", get, `,"result":{"device":{"id":3}}}`, "", ""},
		{"a null error", get, `,"result":{"device":{"id":3}},"error":null}`, "", ""},
		{"unknown members", get, `,"result":{"device":{"id":3},"x":1},"took":5}`, "", ""},
		{"not found", get, `,"error":{"type":"not_found","message":"no device 3"}}`, unknown, "no device 3"},
		{"unavailable, any method", protocol.MethodRemovalClose, `,"error":{"type":"hub_unavailable","message":"radio"}}`,
			domain.CodeHubUnavailable, "radio"},
		{"command refused", protocol.MethodChannelsCommand, `,"error":{"type":"command_refused","message":"m"}}`,
			domain.CodeCommandRefused, "m"},
		{"invalid request", protocol.MethodPairingOpen, `,"error":{"type":"invalid_request","message":"m"}}`,
			domain.CodeInvalidRequest, "m"},
		{"still on the network", protocol.MethodDevicesForget, `,"error":{"type":"invalid_request","message":"m"}}`,
			domain.CodeInvalidRequest, "m"},
		{"an error of another method", protocol.MethodDevicesList, `,"error":{"type":"not_found","message":"m"}}`,
			failed, "m"},
		{"an error of the API", get, `,"error":{"type":"unauthenticated","message":"m"}}`, failed, "m"},
		{"no message", get, `,"error":{"type":"not_found"}}`, unknown, "gave no reason"},
		{"a message with control characters", get, `,"error":{"type":"not_found","message":"a\u0000\n\u001b[31mb"}}`,
			unknown, "a[31mb"},
		{"a long message", get, `,"error":{"type":"not_found","message":"` + strings.Repeat("é", 200) + `"}}`,
			unknown, strings.Repeat("é", maxMessageBytes/2)},
		{"both", get, `,"result":{},"error":{"type":"not_found"}}`, failed, "exactly one"},
		{"neither", get, `{"id":"R"}`, failed, "exactly one"},
		{"a null result", protocol.MethodPairingClose, `,"result":null}`, failed, "exactly one"},
		{"a result that is a list", protocol.MethodDevicesList, `,"result":[]}`, failed, "not an object"},
		{"a result of another shape", get, `,"result":{"device":5}}`, failed, "shape"},
		{"an error that is a string", get, `,"error":"not_found"}`, failed, "no type"},
		{"an error without a type", get, `,"error":{"message":"m"}}`, failed, "no type"},
		{"a name in another case", get, `,"Result":{"device":{}}}`, failed, "exactly one"},
		{"the id of another request", get, `{"id":"Q","result":{}}`, failed, "id"},
		{"no id", get, `{"result":{}}`, failed, "id"},
		{"nothing", get, ``, failed, "not an object"},
		{"no JSON", get, `hello`, failed, "not an object"},
		{"too long", get, strings.Repeat(" ", maxAnswerBytes+1), failed, "bytes"},
		{"something after the object", get, `,"result":{}} {}`, failed, "not JSON"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var result struct{ Device struct{ ID int64 } }
			if strings.HasPrefix(tc.answer, ",") {
				tc.answer = `{"id":"R"` + tc.answer
			}
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
	if err := decode(protocol.MethodDevicesList, "R", list, read); err != nil || raw != `{"devices":[1.50]}` {
		t.Errorf("the reader got %s, %v, want the result as it is written", raw, err)
	}
}

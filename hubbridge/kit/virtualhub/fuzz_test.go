package virtualhub

import (
	"encoding/json"
	"testing"

	"hubcloud/hubbridge/protocol"
)

// FuzzRequest: any readable request is answered with exactly one of a result and an error.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"id":"1","token":"a/b","method":"devices.list","params":{},"timeout_ms":10000}`,
		`{"id":"1","token":"a","method":"devices.get","params":{"device_id":3}}`,
		`{"id":"1","token":"a","method":"devices.forget","params":{"device_id":3}}`,
		`{"id":"1","token":"a","method":"channels.command","params":` + unlock + `}`,
		`{"id":"1","token":"a","method":"channels.command","params":{"command_id":"x","device_id":10,"key":"color","value":{"red":1,"green":2,"blue":3}}}`,
		`{"id":"1","token":"a","method":"pairing.open","params":{"setup_code":"12345"}}`,
		`{"id":"1","token":"a","method":"pairing.close"}`,
		`{"id":"1","token":"a","method":"removal.open","params":null}`,
		`{"id":"1","token":"a","method":"removal.close","params":[]}`,
		`{"id":"1","token":"#","method":"devices.list"}`, `{"id":"1","token":"a//b"}`, `[]`,
		`null`, `{`,
	} {
		f.Add([]byte(seed))
	}
	c := newTestHub(f, "")
	f.Fuzz(func(t *testing.T, payload []byte) {
		var req protocol.Request
		if json.Unmarshal(payload, &req) != nil {
			return
		}
		r := c.hub.Engine().HandleRequest(t.Context(), c, req, noon)
		if r.ID != req.ID || (r.Result == nil) == (r.Error == nil) ||
			r.Error != nil && (r.Error.Type == "" || r.Error.Message == "") {
			t.Fatalf("%+v", r)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}

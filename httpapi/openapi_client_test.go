package httpapi

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"hubcloud/httpapi/client"
)

// The types of the Go client have the fields of the document's schemas, so that nothing of an answer
// is lost.
func TestClientHasEveryField(t *testing.T) {
	t.Parallel()
	d := described(t)
	for name, value := range map[string]any{
		"Site": client.Site{}, "Hub": client.Hub{}, "HubConnection": client.Connection{},
		"HubItem": client.ListedHub{}, "HubItemConnection": client.ListedConnection{},
		"Firmware": client.Firmware{}, "Network": client.Network{},
		"DeviceItem": client.ListedDevice{}, "Device": client.Device{},
		"DeviceLabel": client.DeviceLabel{}, "Window": client.Window{},
		"State": client.State{}, "StateDevice": client.StateDevice{},
		"PastChannel": client.PastChannel{}, "AttentionItem": client.Condition{},
		"Webhook":       client.Webhook{},
		"WebhookFilter": client.WebhookFilter{}, "WebhookProgress": client.WebhookProgress{},
		"WebhookDelivery": client.WebhookDelivery{}, "Credential": client.Credential{},
		"CredentialList": client.Credentials{}, "SentCredentials": client.SentCredentials{},
		"AuditRecord": client.AuditRecord{}, "AuditActor": client.AuditActor{},
		"AuditSubject": client.AuditSubject{}, "AuditPage": client.AuditPage{},
		"Member": client.Member{}, "Invitation": client.Invitation{},
		"Commands": client.Commands{}, "CommandOutcome": client.CommandOutcome{},
		"Color": client.Color{}, "Alarm": client.Alarm{}, "Scene": client.Scene{},
		"EventReader": client.Reader{},
	} {
		want := d.schema(name).get("properties").keys()
		if got := fieldsOf(reflect.TypeOf(value)); !slices.Equal(got, want) {
			t.Errorf("%s: got the fields %v of %T, want %v", name, got, value, want)
		}
	}
}

// fieldsOf returns the names that a struct's fields have in JSON, ascending.
func fieldsOf(object reflect.Type) (names []string) {
	for _, field := range reflect.VisibleFields(object) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

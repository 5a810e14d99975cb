package virtualhub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// DevicesFile is the content of a devices file: a JSON object whose fields are all optional.
//
//	{
//	  "devices": [
//	    {"kind": "lock", "name": "Front door"},
//	    {"kind": "thermostat", "name": "Hall", "min": 7, "max": 30, "values": {"temperature": 18.5}},
//	    {"kind": "switch", "gangs": 2, "values": {"switch/2": true}}
//	  ],
//	  "joinable": [{"kind": "lock", "name": "Side door"}],
//	  "faults": {"jammed": [1], "late_answers": "3s"}
//	}
//
// Devices get the ids 1, 2, … in order. The fields of a device are as in DeviceSpec, the fields
// of faults as in Faults.
type DevicesFile struct {
	// Devices are the devices of a new hub. Defaults to DemoDevices().
	Devices []DeviceSpec `json:"devices"`
	// Joinable are the devices that can join. Defaults to joinableDevices().
	Joinable []DeviceSpec `json:"joinable"`
	// Faults are the faults from the start.
	Faults Faults `json:"faults"`
}

// ReadDevicesFile reads and validates a devices file. Errors name the path and the invalid field.
func ReadDevicesFile(path string) (DevicesFile, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return DevicesFile{}, err
	}
	f, err := parseDevicesFile(raw)
	if err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func parseDevicesFile(raw []byte) (DevicesFile, error) {
	var f DevicesFile
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return f, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return f, errors.New("must be one JSON object: there is more after it")
	}
	for i, spec := range slices.Concat(f.Devices, f.Joinable) {
		list, n := "devices", i
		if i >= len(f.Devices) {
			list, n = "joinable", i-len(f.Devices)
		}
		if err := checkSpec(spec); err != nil {
			return f, fmt.Errorf("%s[%d]: %w", list, n, err)
		}
	}
	return f, nil
}

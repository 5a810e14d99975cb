package domain

import (
	"fmt"
	"reflect"
)

// CheckFields returns an error that names the first field of a configuration, a struct, whose value
// its tag does not allow; owner is whose configuration it is. The tag says what the value must be:
//
//	check:"set"         not the zero value
//	check:"positive"    a number or a duration above 0
//	check:"at least 1"
//	check:"1 to 5"      both included
//	check:"valid"       a struct whose own fields have tags
func CheckFields(owner string, config any) error {
	return checkFields(owner, reflect.ValueOf(config))
}

func checkFields(owner string, config reflect.Value) error {
	for i := range config.NumField() {
		field, value := config.Type().Field(i), config.Field(i)
		switch want := field.Tag.Get("check"); {
		case want == "valid":
			if err := checkFields(owner, value); err != nil {
				return err
			}
		case want == "set" && value.IsZero():
			return fmt.Errorf("%s: %s: must be set", owner, field.Name)
		case want != "" && want != "set" && !allows(want, value):
			return fmt.Errorf("%s: %s: is %v, must be %s", owner, field.Name, value, want)
		}
	}
	return nil
}

// allows reports whether a number is within the bounds of a tag.
func allows(want string, value reflect.Value) bool {
	if want == "positive" {
		return value.CanFloat() && value.Float() > 0 || value.CanInt() && value.Int() > 0
	}
	var low, high int64
	if _, err := fmt.Sscanf(want, "%d to %d", &low, &high); err == nil {
		return low <= value.Int() && value.Int() <= high
	}
	if _, err := fmt.Sscanf(want, "at least %d", &low); err != nil {
		panic("unknown check: " + want)
	}
	return value.Int() >= low
}

package protocol

import (
	"bytes"
	"reflect"
	"testing"
	"unsafe"
)

// TestCanonicalFormHasEveryField changes each field of a claim by itself, and has
// the encoding change with it: a field that is added and forgotten would have the
// exploration take different states for one.
func TestCanonicalFormHasEveryField(t *testing.T) {
	exempt := map[string]bool{
		"Claim.cfg":   true, // the same for a whole instance
		"Claim.value": true, // named by the claim's place
		"Claim.seq":   true, // what the other numbers are relative to
	}
	f := Frame{Now: 1 << 30, Clock: 1 << 50, Least: 1 << 45}
	encode := func(c *Claim) []byte { return c.AppendNodeTo(c.AppendTo(nil, f), 0, f) }
	var look func(path string, v reflect.Value, c *Claim)
	look = func(path string, v reflect.Value, c *Claim) {
		if exempt[path] {
			return
		}
		switch {
		case v.Type() == reflect.TypeFor[When](): // an absent time has no value
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				look(path+"."+v.Type().Field(i).Name, v.Field(i), c)
			}
			return
		case v.Kind() == reflect.Array:
			look(path+"[0]", v.Index(0), c)
			return
		}
		before := encode(c)
		field := reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
		switch v.Kind() {
		case reflect.Struct:
			field.Set(reflect.ValueOf(At(1)))
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			field.SetInt(1)
		default:
			field.SetUint(1)
		}
		if bytes.Equal(before, encode(c)) {
			t.Errorf("%s makes no difference", path)
		}
		field.SetZero()
	}
	c := Claim{seq: 5}
	// Parts that are empty are written as such.
	c.wait.rounds, c.partial.stale, c.yield.tries, c.pass.passes = 2, 2, 2, 2
	look("Claim", reflect.ValueOf(&c).Elem(), &c)
}

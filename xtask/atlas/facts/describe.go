package main

import (
	"fmt"
	"go/ast"
	"reflect"
	"strconv"
	"strings"
)

// Types with a form of their own on the wire, in JSON or in both.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "fields",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "intorstring",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "raw",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "json",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "schemaorbool",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "schemaorarray",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "schemaorstrings",
}

// Go's words for scalars and ours.
var scalars = map[string]string{
	"bool": "bool", "string": "string", "int32": "int32", "int64": "int64", "int": "int64",
	"float64": "double", "uint32": "int64", "uint64": "int64",
}

// reach describes a type and everything it leads to.
func (w *world) reach(from *pkg, name string) error {
	if _, ok := from.found[name]; ok {
		return nil
	}
	decl, ok := from.types[name]
	if !ok {
		return fmt.Errorf("%s has no type %s", from.path, name)
	}
	from.found[name] = "" // Types may lead back to themselves.
	body, err := w.structOf(from, decl)
	if err != nil {
		return fmt.Errorf("%s.%s: %w", from.path, name, err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "= %s", name)
	if how, ok := from.kinds[name]; ok {
		fmt.Fprintf(&out, " %s", how)
	}
	if decl.markers.first("structType") == "atomic" || decl.markers.first("mapType") == "atomic" {
		out.WriteString(" atomic")
	}
	out.WriteByte('\n')
	for _, field := range body.struct_.Fields.List {
		line, err := w.describeField(body.from, body.decl, field)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", from.path, name, err)
		}
		out.WriteString(line)
	}
	from.found[name] = out.String()
	return nil
}

type structBody struct {
	from    *pkg
	decl    *typeDecl
	struct_ *ast.StructType
}

// structOf follows a declaration to the struct under it.
func (w *world) structOf(from *pkg, decl *typeDecl) (structBody, error) {
	if body, ok := decl.expr.(*ast.StructType); ok {
		return structBody{from, decl, body}, nil
	}
	next, name, err := w.lookup(from, decl, decl.expr)
	if err != nil {
		return structBody{}, err
	}
	if found, ok := next.types[name]; ok {
		return w.structOf(next, found)
	}
	return structBody{}, fmt.Errorf("%s is not a struct", name)
}

// describeField is one line: name, number, type and what else is known.
func (w *world) describeField(from *pkg, decl *typeDecl, field *ast.Field) (string, error) {
	if field.Tag == nil {
		return "", nil
	}
	text, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return "", err
	}
	tag := reflect.StructTag(text)
	name, options, _ := strings.Cut(tag.Get("json"), ",")
	if name == "-" {
		return "", nil
	}
	number := protobufNumber(tag)
	kind, err := w.typeOf(from, decl, field.Type)
	if err != nil {
		return "", err
	}
	if name == "" {
		return fmt.Sprintf("> %d %s\n", number, kind), nil
	}
	known := markers{}
	known.read(field.Doc)
	extra, err := describeMarkers(from, known, options, tag)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Sprintf("%s %d %s%s\n", name, number, kind, extra), nil
}

func protobufNumber(tag reflect.StructTag) int {
	parts := strings.Split(tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return number
}

func describeMarkers(from *pkg, known markers, options string, tag reflect.StructTag) (string, error) {
	var out strings.Builder
	omitEmpty := strings.Contains(options, "omitempty")
	if omitEmpty {
		out.WriteString(" o")
	}
	if strings.Contains(options, "omitzero") {
		out.WriteString(" z")
	}
	if known.has("required") || (!known.has("optional") && !omitEmpty) {
		out.WriteString(" r")
	}
	if known.has("nullable") {
		out.WriteString(" n")
	}
	if kind := known.first("listType"); kind != "" {
		fmt.Fprintf(&out, " l=%s", kind)
	}
	if keys := known["listMapKey"]; len(keys) > 0 {
		fmt.Fprintf(&out, " k=%s", strings.Join(keys, ","))
	}
	switch {
	case known.first("mapType") == "atomic", known.first("structType") == "atomic":
		out.WriteString(" a")
	case known.first("mapType") == "granular", known.first("structType") == "granular":
		out.WriteString(" g")
	}
	if strategy := tag.Get("patchStrategy"); strategy != "" {
		fmt.Fprintf(&out, " p=%s", strategy)
	}
	if key := tag.Get("patchMergeKey"); key != "" {
		fmt.Fprintf(&out, " m=%s", key)
	}
	if known.has("default") {
		value, err := defaultValue(from, known.first("default"))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, " d=%s", value)
	}
	return out.String(), nil
}

// defaultValue is the JSON of a default; some are written as the name of a constant.
func defaultValue(from *pkg, text string) (string, error) {
	name, ok := strings.CutPrefix(text, "ref(")
	if !ok {
		return text, nil
	}
	value, ok := from.constants[strings.TrimSuffix(name, ")")]
	if !ok {
		return "", fmt.Errorf("unknown constant in default %s", text)
	}
	return strconv.Quote(value), nil
}

// typeOf is the type of a field in the notation of the table.
func (w *world) typeOf(from *pkg, decl *typeDecl, expr ast.Expr) (string, error) {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		inner, err := w.typeOf(from, decl, expr.X)
		return "*" + inner, err
	case *ast.ArrayType:
		if element, ok := expr.Elt.(*ast.Ident); ok && element.Name == "byte" {
			return "bytes", nil
		}
		inner, err := w.typeOf(from, decl, expr.Elt)
		return "[]" + inner, err
	case *ast.MapType:
		inner, err := w.typeOf(from, decl, expr.Value)
		return "{}" + inner, err
	case *ast.InterfaceType:
		return "any", nil
	case *ast.Ident:
		if scalar, ok := scalars[expr.Name]; ok {
			return scalar, nil
		}
		if expr.Name == "any" {
			return "any", nil
		}
	}
	next, name, err := w.lookup(from, decl, expr)
	if err != nil {
		return "", err
	}
	return w.namedType(next, name)
}

// namedType is how a field refers to a declared type.
func (w *world) namedType(from *pkg, name string) (string, error) {
	if word, ok := special[from.path+"."+name]; ok {
		if strings.HasPrefix(word, "schema") {
			return word, w.reach(from, "JSONSchemaProps")
		}
		return word, nil
	}
	decl, ok := from.types[name]
	if !ok {
		return "", fmt.Errorf("%s has no type %s", from.path, name)
	}
	switch expr := decl.expr.(type) {
	case *ast.StructType:
		return from.name + "." + name, w.reach(from, name)
	case *ast.Ident:
		if expr.Name == "string" && decl.markers.has("enum") {
			from.found[name] = fmt.Sprintf("! %s %s\n", name, strings.Join(from.enums[name], ","))
			return from.name + "." + name, nil
		}
	case *ast.ArrayType:
		if decl.markers.has("protobuf.nullable") {
			inner, err := w.typeOf(from, decl, expr.Elt)
			return "<>" + inner, err
		}
	}
	return w.typeOf(from, decl, decl.expr)
}
